package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
)

// A server is a database server of our own, in a temporary folder, that may be killed.
type server struct {
	name    string
	dir     string
	dsn     string
	command []string
	user    *syscall.Credential // nil: ours

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	log   bytes.Buffer
}

// Where servers are that are not in the PATH.
var (
	postgresDirs = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin"}
	mariadbDirs  = []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/opt/mariadb*/bin"}
)

// program finds a program in the PATH, or in the newest of some folders.
func program(name string, dirs []string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.EvalSymlinks(path)
	}
	for _, pattern := range dirs {
		found, _ := filepath.Glob(filepath.Join(pattern, name)) // the patterns are good
		slices.Sort(found)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: %s is neither in the PATH nor where it is installed", errNoServer, name)
}

func newPostgres() (*server, error) {
	postgres, err := program("postgres", postgresDirs)
	if err != nil {
		return nil, err
	}
	initdb := filepath.Join(filepath.Dir(postgres), "initdb") // of the same version
	if _, err := os.Stat(initdb); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoServer, err)
	}
	s, err := newServer("PostgreSQL", "postgres")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	s.command = []string{postgres, "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=400"}
	s.dsn = "postgres:///postgres?user=postgres&sslmode=disable&host=" + s.dir
	return s, s.setUp(initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C")
}

func newMariaDB() (*server, error) {
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
	s, err := newServer("MariaDB", "mysql")
	if err != nil {
		return nil, err
	}
	data := "--datadir=" + filepath.Join(s.dir, "data")
	s.command = []string{mariadbd, "--no-defaults", data, "--socket=" + filepath.Join(s.dir, "s"), "--pid-file=" + filepath.Join(s.dir, "pid"),
		"--bind-address=127.0.0.1", "--port=" + port, "--skip-name-resolve", "--max-connections=400", "--skip-log-bin", "--tmpdir=" + s.dir}
	s.dsn = "mysql://root@127.0.0.1:" + port + "/mysql"
	return s, s.setUp(install, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db")
}

// freePort is a port that was free just now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// newServer makes a folder of its own for a server. Servers refuse to run as root: there they are run as their own user, or as nobody.
func newServer(name, account string) (*server, error) {
	s := &server{name: name}
	var err error
	if s.dir, err = cli.TempDir(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return s, nil
	}
	u, err := user.Lookup(account)
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: root may not run it, and there is no user for it: %w", errNoServer, err), s.close())
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers on every Unix
	gid, _ := strconv.Atoi(u.Gid)
	s.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(s.dir, uid, gid); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *server) exec(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+s.dir, "HOME="+s.dir, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Setpgid: true}
	return cmd
}

// setUp makes the files.
func (s *server) setUp(argv ...string) error {
	if out, err := s.exec(argv...).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, cli.OneLine(string(out), 500)), s.close())
	}
	return nil
}

// serverLimit is how long a server may take to answer, recovery from a kill included.
const serverLimit = 30 * time.Second

// start starts the server and waits until it answers. A server whose predecessor is not quite gone ends at once and is
// started again.
func (s *server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	for {
		if err := s.launch(); err != nil {
			return err
		}
		if s.answers(ctx) {
			return nil
		}
		if ctx.Err() != nil {
			s.kill()
			return fmt.Errorf("%s does not answer: %s", s.name, cli.OneLine(s.log.String(), 1000))
		}
		cli.Pause(ctx, 20*time.Millisecond)
	}
}

// createDatabase leaves the database that the server has for itself.
func (s *server) createDatabase(ctx context.Context) error {
	at := source{dsn: s.dsn}
	db, err := at.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.sql.ExecContext(ctx, "CREATE DATABASE chaos"); err != nil {
		return err
	}
	s.dsn = strings.TrimSuffix(s.dsn, "mysql") + "chaos"
	return nil
}

func (s *server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Reset()
	cmd, ended := s.exec(s.command...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.WaitDelay = time.Second // its own children may outlive it by a moment, and hold the pipe
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.cmd, s.ended = cmd, ended
	return nil
}

// answers waits for an answer; not ok: the server has ended, or ctx has.
func (s *server) answers(ctx context.Context) bool {
	at := source{dsn: s.dsn}
	for {
		if db, err := at.connect(ctx); err == nil {
			db.Close()
			return true
		}
		select {
		case <-s.ended:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill kills the server with SIGKILL and waits for its end.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // it has ended already
		<-s.ended
	}
}

func (s *server) close() error {
	s.kill()
	return os.RemoveAll(s.dir)
}
