package open_test

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue/open"
	"github.com/taskd-go/task/queue/sqlqueue"
)

func TestCheckNamesTheRuleAndNotThePassword(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"":                              "want sqlite:/path/file.db",
		"file.db":                       "want sqlite:/path/file.db",
		"oracle://u:secret@h":           "want sqlite:/path/file.db",
		"postgres:":                     "want sqlite:/path/file.db",
		"sqlite:":                       "want the path of a file",
		"sqlite::memory:":               "want the path of a file",
		"postgres://u:se%zzcret@h/x":    "not a URL",
		"mysql://u:se%zzcret@h/x":       "not a URL",
		"mysql://u:secret@h:99999/x":    "want a port from 1 to 65535",
		"postgres://u:secret@h:0/x":     "want a port from 1 to 65535",
		"mysql://u:secret@h":            "want the name of a database",
		"mysql://u:secret@h/":           "want the name of a database",
		"sqlite:/path/file.db":          "",
		"sqlite://relative.db":          "",
		"postgres://u:secret@h/x?a=b":   "",
		"postgresql:///x":               "",
		"mysql://u:secret@[::1]:3306/x": "",
	} {
		err := open.Check(dsn)
		if want == "" {
			assert.NoError(t, err, dsn)
			continue
		}
		require.ErrorContains(t, err, want, dsn)
		assert.NotContains(t, err.Error(), "secret")
		_, opened := open.Open(t.Context(), dsn)
		assert.ErrorContains(t, opened, want, dsn)
	}
}

func TestOpenReportsAServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"postgres://u:secret@127.0.0.1:1/x", "mysql://u:secret@127.0.0.1:1/x"} {
		_, err := open.Open(t.Context(), dsn)
		require.ErrorContains(t, err, "connection refused")
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestSeveralMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "queue.db")
	tables := open.Tables(sqlqueue.Tables{Prefix: "app_"})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			db, err := open.Open(t.Context(), dsn, tables)
			if !assert.NoError(t, err) {
				return
			}
			defer db.Close()
			_, err = db.Migrate(t.Context())
			assert.NoError(t, err)
			var jobs int
			assert.NoError(t, db.SQL.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM app_jobs").Scan(&jobs))
		})
	}
	all.Wait()
	db, err := open.Open(t.Context(), dsn, tables)
	require.NoError(t, err)
	defer db.Close()
	applied, err := db.Migrate(t.Context())
	require.NoError(t, err)
	assert.Zero(t, applied)
}

func TestWrapIsAroundWhatTheStoreWrites(t *testing.T) {
	t.Parallel()
	var wrapped *sql.DB
	db, err := open.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "queue.db"),
		open.Wrap(func(db *sql.DB) *sql.DB {
			wrapped = db
			return db
		}))
	require.NoError(t, err)
	defer db.Close()
	assert.Same(t, db.SQL, wrapped)
}

func TestOpenRefusesTablesWithoutAName(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "queue.db")
	_, err := open.Open(t.Context(), dsn, open.Tables(sqlqueue.Tables{Prefix: "a b"}))
	assert.ErrorContains(t, err, `"a bjobs"`)
}
