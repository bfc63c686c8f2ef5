package main

import (
	"go/build"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The packages of the command know few others. The commands of pool and queue do not know the
// built-in tasks and jobs, so that they can serve those of a user's program.
func TestThePackagesOfTheCommandKnowOnlyWhatTheyNeed(t *testing.T) {
	t.Parallel()
	may := map[string][]string{
		"cli":      nil,
		"periodic": nil,
		"term":     {"periodic"},
		"settings": {"cli", "term"},
		"database": {"cli", "settings"},
		"builtin":  {"cli", "periodic", "settings"},
		"poolcmd":  {"cli", "settings", "term"},
		"queuecmd": {"cli", "database", "settings", "term"},
		"waittest": nil,
	}
	folders, err := os.ReadDir("internal")
	require.NoError(t, err)
	for _, folder := range folders {
		allowed, known := may[folder.Name()]
		if !assert.True(t, known, "%s is not in the table", folder.Name()) {
			continue
		}
		pkg, err := build.ImportDir("internal/"+folder.Name(), 0)
		require.NoError(t, err)
		for _, path := range pkg.Imports {
			if name, own := strings.CutPrefix(path, "github.com/taskd-go/task/cmd/taskd/internal/"); own {
				assert.True(t, slices.Contains(allowed, name), "%s imports %s", folder.Name(), name)
			}
		}
	}
}
