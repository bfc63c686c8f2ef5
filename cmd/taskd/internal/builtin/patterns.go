package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task/cmd/taskd/internal/settings"
)

// patterns say which commands exec may run, in the syntax of filepath.Match. A pattern with a slash
// matches the command's absolute path, one without a slash a bare name that PATH resolves: "sh"
// does not match "/tmp/sh".
type patterns []string

func (p *patterns) addFlag(flags *pflag.FlagSet) {
	settings.Add(flags, p, "", "allow-exec",
		"commands that exec may run, separated by commas; may be repeated (default: none)")
}

// Set implements pflag.Value: it adds patterns that are separated by commas.
func (p *patterns) Set(s string) error {
	for pattern := range strings.SplitSeq(s, ",") {
		if _, err := filepath.Match(pattern, ""); err != nil || pattern == "" {
			return errors.New("want patterns of names or absolute paths, such as git or /usr/bin/*")
		}
		*p = append(*p, pattern)
	}
	return nil
}

func (p *patterns) String() string { return strings.Join(*p, ",") }

// Type implements pflag.Value.
func (*patterns) Type() string { return "patterns" }

// Texts returns the patterns.
func (p *patterns) Texts() []string { return *p }

// A DeniedError is a command that no pattern allows.
type DeniedError struct {
	name, path string
	allowed    patterns
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("command %q (%s) matches no pattern of --allow-exec, which are: %s",
		e.name, e.path, cmp.Or(e.allowed.String(), "none"))
}

// find returns the path of an allowed command. An *exec.Error means that the command is allowed but
// does not exist.
func (p patterns) find(name string) (string, error) {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return "", fmt.Errorf("command %q: want a name or an absolute path", name)
	}
	path, notFound := exec.LookPath(name)
	if notFound != nil {
		path = name
	}
	path = filepath.Clean(path)
	for _, pattern := range p {
		subject := path
		if !strings.Contains(pattern, "/") {
			subject = name
		}
		if ok, _ := filepath.Match(pattern, subject); ok {
			return path, notFound
		}
	}
	return "", &DeniedError{name, path, p}
}
