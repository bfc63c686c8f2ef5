package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// target finds what a link or a picture points to, without its anchor.
var target = regexp.MustCompile(`\]\(([^)#\s]+)`)

// A document links to files and folders that exist.
func TestLinksOfTheDocumentsLeadToFiles(t *testing.T) {
	links := 0
	eachDocument(t, func(path, text string) {
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(path), m[1]))
			assert.NoError(t, err, path)
		}
	})
	assert.Greater(t, links, 10)
}

// The lines of a document, those of tables too, have fewer than 120 columns.
func TestLinesOfTheDocumentsHaveFewerThan120Columns(t *testing.T) {
	eachDocument(t, func(path, text string) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimRight(line, "\n")
			assert.Less(t, utf8.RuneCountInString(line), 120, "%s:%d: %s", path, number, line)
		}
	})
}

// eachDocument calls check for each Markdown file of the repository.
func eachDocument(t *testing.T, check func(path, text string)) {
	t.Helper()
	documents := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents++
		check(path, string(text))
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, documents, 5)
}
