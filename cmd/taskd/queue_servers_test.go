package main

import (
	"cmp"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/waittest"
)

func TestServers(t *testing.T) {
	t.Parallel()
	for name, c := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			j.dsn = ownDatabase(t, c.driver, c.admin)
			g := j.gate()
			id := j.push(g.script())
			flags := []string{"work", "--allow-exec", "sh", "--lease", "3s"}
			first := j.start(flags...)
			pid := g.reached()
			first.Signal(syscall.SIGKILL)
			waittest.Gone(t, pid)

			second := j.start(flags...)
			g.reached()
			assert.Equal(t, 2, j.inspect(id).Job.Attempts)
			assert.Equal(t, 1, j.size().Reserved)
			g.open()
			j.push("exit 3", "--tries", "1")
			waittest.Eventually(t, "both are done", func() bool { return j.size().Size == 0 })
			j.ok("retry", j.failed()[0].ID)
			j.push("true", "--queue", "mail")
			assert.Equal(t, "1 jobs removed", j.ok("clear", "--queue", "mail", "--yes"))
			j.ok("restart")
			code, _, stderr := second.Wait()
			assert.Equal(t, cli.ExitRestart, code, stderr)
		})
	}
}

var servers = map[string]struct{ driver, admin string }{
	"PostgreSQL": {
		"pgx", cmp.Or(os.Getenv("TASKD_TEST_POSTGRES"), "postgres://postgres@127.0.0.1:5432/test?sslmode=disable"),
	},
	"MySQL": {"mysql", cmp.Or(os.Getenv("TASKD_TEST_MYSQL"), "root@tcp(127.0.0.1:3306)/test")},
}

// onEveryDatabase runs a test on an SQLite file and on a new database of each server.
func onEveryDatabase(t *testing.T, test func(j *jobs)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(newJobs(t))
	})
	for name, c := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			j.dsn = ownDatabase(t, c.driver, c.admin)
			test(j)
		})
	}
}

// ownDatabase makes a database on a server that answers, and returns its URL.
func ownDatabase(t *testing.T, driver, admin string) string {
	t.Helper()
	db, err := sql.Open(driver, admin)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	if err := db.PingContext(t.Context()); err != nil {
		t.Skipf("NOT TESTED on %s, which does not answer (.ci/services starts it): %v", driver, err)
	}
	name := "taskd_" + strings.ToLower(rand.Text()[:10])
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	drop := "DROP DATABASE " + name
	if driver == "pgx" {
		drop += " WITH (FORCE)"
	}
	t.Cleanup(func() {
		if _, err := db.Exec(drop); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if driver == "mysql" { // user:password@tcp(host)/database
		at := admin[:strings.LastIndex(admin, "/")]
		return "mysql://" + strings.TrimSuffix(strings.Replace(at, "tcp(", "", 1), ")") + "/" + name
	}
	u, err := url.Parse(admin)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}
