package conformance

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
)

// Prepared statements and parameters of sessions fail behind PgBouncer. Here the whole suite passes
// through one in transaction mode that prepares nothing, without a waker: workers look at
// intervals.
func TestThroughPgBouncer_Row54(t *testing.T) {
	direct := openPostgreSQL(t) // skips where there is no server
	dsn := pgBouncer(t)
	db, err := postgres.Open(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	runSuite(t, database{SQL: db.SQL, Dialect: sqlqueue.PostgreSQL, Tables: direct.Tables})
}

// pgBouncer starts one in front of the tests' server and returns how to connect through it.
func pgBouncer(t *testing.T) (dsn string) {
	t.Helper()
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("NOT TESTED behind PgBouncer, which is not installed (.ci/services pgbouncer does it)")
	}
	server, err := pgx.ParseConfig(postgresDSN())
	require.NoError(t, err)
	dir, err := os.MkdirTemp("/tmp", "taskd-bouncer") // another user must get there
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	port := freePort(t)
	password := ""
	if server.Password != "" {
		password = " password='" + strings.ReplaceAll(server.Password, "'", "''") + "'"
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
%s = host=%s port=%d user='%s'%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
`, server.Database, server.Host, server.Port, server.User, password, port), 0o644))
	args := []string{config}
	if os.Geteuid() == 0 {
		args = []string{"-u", "nobody", config}
	}
	cmd := exec.Command(binary, args...)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
	if !answers(address) {
		text, _ := os.ReadFile(log.Name())
		require.Fail(t, "pgbouncer does not listen", "%s", text)
	}
	u := url.URL{Scheme: "postgres", Host: address, User: url.User(server.User), Path: "/" + server.Database,
		RawQuery: "sslmode=disable&default_query_exec_mode=exec"}
	return u.String()
}

func answers(address string) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return true
		}
	}
	return false
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
