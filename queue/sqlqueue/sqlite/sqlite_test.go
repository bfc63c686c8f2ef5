package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

func TestAPathThatIsNoFileIsRefused(t *testing.T) {
	for _, path := range []string{"", ":memory:", t.TempDir(), "/nonexistent/queue.db"} {
		_, err := sqlite.Open(t.Context(), path, sqlite.DurabilityNormal)
		require.Error(t, err, path)
	}
	_, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "queue.db"), "OFF")
	require.ErrorContains(t, err, "must be NORMAL or FULL")
}
