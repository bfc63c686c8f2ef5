package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/term"
)

// DSN is the flag that names a database. No error shows its value, which may contain a password.
const DSN = "dsn"

const (
	configFlag   = "config"
	systemConfig = "/etc/taskd.toml"
	maxConfig    = 1 << 20 // bytes
	delimiter    = "."     // between a section and its keys
)

// AddFlag adds the flag that names the config file.
func (r *Reader) AddFlag(flags *pflag.FlagSet) {
	usage := `file with settings; "" for none (default: $XDG_CONFIG_HOME/taskd/config.toml, else ` + systemConfig + ")"
	flags.String(configFlag, "", usage)
	flags.Lookup(configFlag).Annotations = map[string][]string{field: {""}}
}

// configurable reports whether a command has settings. A broken file must not hide the help.
func configurable(flags *pflag.FlagSet) (any bool) {
	eachSetting(flags, func(f *pflag.Flag) { any = any || f.Name != configFlag })
	return any
}

// open finds and parses the file: the named one, or the first default one that exists.
func (r *Reader) open(given *koanf.Koanf) error {
	r.file = koanf.New(delimiter)
	named, ok := given.Get(configFlag).(setting)
	paths := []string{named.Text}
	if !ok {
		paths = defaultFiles()
	}
	for _, path := range paths {
		if path == "" {
			return nil
		}
		text, err := readFile(path)
		if !ok && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
			continue
		}
		if err != nil {
			return cli.Usagef("the config file: %w; --%s '' reads none", err, configFlag)
		}
		r.path = path
		if err := r.file.Load(rawbytes.Provider(text), tomlParser{}); err != nil {
			return cli.Usagef("%s: %s", path, strings.TrimPrefix(err.Error(), "toml: "))
		}
		return nil
	}
	return nil
}

// defaultFiles returns the places of a file that has no name: the user's, then the machine's.
func defaultFiles() (paths []string) {
	if dir, err := os.UserConfigDir(); err == nil && filepath.IsAbs(dir) {
		paths = append(paths, filepath.Join(dir, "taskd", "config.toml"))
	}
	return append(paths, systemConfig)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("%s: want at most %d bytes", path, maxConfig)
	}
	return text, err
}

// A tomlParser implements koanf.Parser. The errors of its library name the line.
type tomlParser struct{}

func (tomlParser) Unmarshal(text []byte) (values map[string]any, err error) {
	err = toml.Unmarshal(text, &values)
	return values, err
}

func (tomlParser) Marshal(values map[string]any) ([]byte, error) { return toml.Marshal(values) }

// check returns the settings of the file. It also sets the flags of commands that do not run, which
// checks the values.
func (r *Reader) check(cmd *cobra.Command) (settings map[string]any, err error) {
	settings = map[string]any{}
	known := flagsOfAll(cmd.Root())
	values := r.file.All()
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if section, ok := values[key].(map[string]any); ok && len(section) == 0 {
			continue
		}
		s := setting{Shown: shown(key, values[key]), From: r.path + ": " + key + " = "}
		err := checkQueue(key, values[key])
		if errors.Is(err, errNotOfQueue) {
			if s.Text, err = textFor(known[key], values[key]); err == nil {
				err = setOthers(known[key], cmd.Flags().Lookup(key), s.Text)
			}
			if err == nil {
				settings[key] = s
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%s: %w", s.From, s.Shown, err))
		}
	}
	return settings, errors.Join(errs...)
}

// flagsOfAll returns the flags of all commands that can stand in a file, by name.
func flagsOfAll(root *cobra.Command) map[string][]*pflag.Flag {
	found := map[string][]*pflag.Flag{}
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			eachSetting(flags, func(f *pflag.Flag) {
				if f.Name != configFlag && !slices.Contains(found[f.Name], f) {
					found[f.Name] = append(found[f.Name], f)
				}
			})
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(root)
	return found
}

func setOthers(flags []*pflag.Flag, own *pflag.Flag, text string) error {
	for _, f := range flags {
		if f == own {
			continue
		}
		if err := f.Value.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// textFor returns a value of the file as a command line would write it for one of the flags.
func textFor(flags []*pflag.Flag, value any) (string, error) {
	if len(flags) == 0 {
		return "", errors.New("there is no such setting; taskd --help says which there are")
	}
	_, list := flags[0].Value.(interface{ Texts() []string })
	kind := flags[0].Value.Type()
	switch v := value.(type) {
	case string:
		if kind != "number" && !list {
			return v, nil
		}
	case int64:
		if kind == "number" || kind == "bytes" {
			return strconv.FormatInt(v, 10), nil
		}
	case []any:
		if text, ok := joined(v); ok && list {
			return text, nil
		}
	}
	return "", errors.New(want(kind, list))
}

// joined returns a list as a command line would write it, unless one of its values would be taken
// for several.
func joined(values []any) (text string, ok bool) {
	list := make([]string, len(values))
	for i := range values {
		if list[i], ok = values[i].(string); !ok || strings.Contains(list[i], ",") {
			return "", false
		}
	}
	return strings.Join(list, ","), true
}

func want(kind string, list bool) string {
	switch {
	case list:
		return "want a list of texts"
	case kind == "number":
		return "want a whole number"
	case kind == "bytes":
		return `want a number of bytes, or a text such as "2MiB"`
	case kind == "duration":
		return `want a text such as "1.5s"`
	}
	return "want a text"
}

// shown returns a value as an error shows it.
func shown(key string, value any) string {
	if key == DSN || strings.HasPrefix(key, connections) {
		return "(not shown)"
	}
	if text, ok := value.(string); ok {
		return strconv.Quote(text)
	}
	return term.Cell(fmt.Sprint(value), 80)
}
