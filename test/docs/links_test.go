package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// target finds what a link or a picture points to, without its anchor.
var target = regexp.MustCompile(`\]\(([^)#\s]+)`)

// A document links to files and folders that exist.
func TestLinksOfTheDocumentsLeadToFiles(t *testing.T) {
	links := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range target.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(path), m[1]))
			assert.NoError(t, err, path)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, links, 10)
}
