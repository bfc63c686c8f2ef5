package sqlqueue_test

import (
	"database/sql"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue/sqlqueue"
)

func TestMigrationsHaveTheTablesNames(t *testing.T) {
	for _, d := range []sqlqueue.Dialect{sqlqueue.SQLite, sqlqueue.PostgreSQL, sqlqueue.MySQL} {
		files := sqlqueue.Migrations(d, sqlqueue.Tables{Prefix: "app_", Jobs: "work"})
		names, err := fs.Glob(files, "*.sql")
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			require.NoError(t, err)
			assert.Contains(t, string(text), "CREATE TABLE app_work (")
			assert.Contains(t, string(text), "CREATE TABLE app_failed_jobs (")
			assert.NotContains(t, string(text), "{", "%s has a name that was not put in", name)
			info, err := fs.Stat(files, name)
			require.NoError(t, err)
			assert.EqualValues(t, len(text), info.Size())
		}
	}
	for _, bad := range []sqlqueue.Tables{{Jobs: "jobs; DROP TABLE x"}, {Prefix: strings.Repeat("p", 60)}, {Failed: "ö"}} {
		_, err := fs.ReadFile(sqlqueue.Migrations(sqlqueue.SQLite, bad), "00001_queue.sql")
		require.ErrorContains(t, err, "table name")
	}
	_, err := fs.ReadFile(sqlqueue.Migrations(9, sqlqueue.Tables{}), "00001_queue.sql")
	require.Error(t, err)
}

func TestNewRefusesWhatIsNoDatabase(t *testing.T) {
	_, err := sqlqueue.New(nil, sqlqueue.SQLite)
	require.Error(t, err)
	_, err = sqlqueue.New(&sql.DB{}, 0)
	require.ErrorContains(t, err, "must be SQLite, PostgreSQL or MySQL")
}
