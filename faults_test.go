package task_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/faults.md names tests that exist.
func TestFaultsAreTested(t *testing.T) {
	doc, err := os.ReadFile("docs/faults.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test\\w+)`(?: \\(([\\w/]+)\\))?").FindAllStringSubmatch(string(doc), -1)
	require.NotEmpty(t, named)
	sources := map[string]string{}
	for _, m := range named {
		name, dir := m[1], filepath.Join(".", m[2])
		if _, read := sources[dir]; !read {
			files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
			for _, f := range files {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				sources[dir] += string(text)
			}
		}
		assert.Contains(t, sources[dir], "func "+name+"(t *testing.T)", "in %s", dir)
	}
}
