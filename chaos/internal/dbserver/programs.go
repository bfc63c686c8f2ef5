package dbserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// Where the programs lie that are not in the PATH.
var (
	postgresDirs = []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin",
	}
	mariadbDirs = []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/opt/mariadb*/bin"}
)

// program finds a program in the PATH, or in the newest of some folders.
func program(name string, dirs []string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.EvalSymlinks(path)
	}
	for _, pattern := range dirs {
		found, _ := filepath.Glob(filepath.Join(pattern, name)) // the patterns are valid
		slices.Sort(found)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: %s is neither in the PATH nor where it is installed", ErrNoProgram, name)
}

// NewPostgres makes the files of a PostgreSQL server in dir, a new folder.
func NewPostgres(dir string) (*Server, error) {
	postgres, err := program("postgres", postgresDirs)
	if err != nil {
		return nil, err
	}
	initdb := filepath.Join(filepath.Dir(postgres), "initdb") // of the same version
	if _, err := os.Stat(initdb); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	s, err := newServer("PostgreSQL", "postgres", dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	s.command = []string{postgres, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "max_connections=400"}
	s.DSN = "postgres:///postgres?user=postgres&sslmode=disable&host=" + dir
	return s, s.setUp(initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions",
		"-E", "UTF8", "--locale=C")
}

// NewMariaDB makes the files of a MariaDB server in dir, a new folder. Its DSN names the database
// mysql, which belongs to the server.
func NewMariaDB(dir string) (*Server, error) {
	mariadbd, err := program("mariadbd", mariadbDirs)
	if err != nil {
		return nil, err
	}
	install, err := program("mariadb-install-db", mariadbDirs)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s, err := newServer("MariaDB", "mysql", dir)
	if err != nil {
		return nil, err
	}
	data := "--datadir=" + filepath.Join(dir, "data")
	s.command = []string{
		mariadbd, "--no-defaults", data, "--tmpdir=" + dir,
		"--socket=" + filepath.Join(dir, "s"), "--pid-file=" + filepath.Join(dir, "pid"),
		"--bind-address=127.0.0.1", "--port=" + port, "--skip-name-resolve", "--max-connections=400", "--skip-log-bin",
	}
	s.DSN = "mysql://root@127.0.0.1:" + port + "/mysql"
	return s, s.setUp(install, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db")
}

// freePort returns a port that is free at the moment.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
