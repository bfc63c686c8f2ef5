package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../"

// docs/faults.md names tests that exist: functions, and behaviours in words.
func TestFaultsAreTested(t *testing.T) {
	doc, err := os.ReadFile(root + "docs/faults.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test\\w+|[^`]+_Row\\d+)`(?: \\(([\\w/]+)\\))?").FindAllStringSubmatch(string(doc), -1)
	require.NotEmpty(t, named)
	sources := map[string]string{}
	for _, m := range named {
		name, dir := m[1], m[2]
		if _, read := sources[dir]; !read {
			sources[dir] = sourcesIn(t, dir)
		}
		if strings.HasPrefix(name, "Test") {
			name = "func " + name + "(t *testing.T)"
		} else {
			name = strconv.Quote(name)
		}
		assert.Contains(t, sources[dir], name, "in %s", dir)
	}
}

// What is tested for a fault of job queues is in docs/faults.md.
func TestTestedFaultsAreListed(t *testing.T) {
	doc, err := os.ReadFile(root + "docs/faults.md")
	require.NoError(t, err)
	for _, dir := range []string{"job", "middleware", "pooljob", "queue/queuetest", "test/conformance"} {
		for _, m := range regexp.MustCompile(`(?:func |\{")([^"\n(]+_Row\d+)\b`).FindAllStringSubmatch(sourcesIn(t, dir), -1) {
			assert.Contains(t, string(doc), "`"+m[1]+"` ("+dir+")")
		}
	}
}

func sourcesIn(t *testing.T, dir string) (text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	for _, f := range files {
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		text += string(source)
	}
	return text
}
