// Package dbserver runs private PostgreSQL and MariaDB servers that a run of chaos may kill.
package dbserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
)

// ErrNoProgram is in the error when this machine lacks a program or a user that a server needs.
var ErrNoProgram = errors.New("no server program was found")

// A Server is a database server with its files in a folder of a run. The guard of that folder ends
// the server with the run; see package rundir.
type Server struct {
	Name string
	DSN  string

	dir     string
	command []string
	account *syscall.Credential // nil: this process's

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	log   bytes.Buffer
}

// newServer makes dir for a server. Servers refuse to run as root; for root they run as the named
// account, or as nobody.
func newServer(name, account, dir string) (*Server, error) {
	s := &Server{Name: name, dir: dir}
	if err := os.Mkdir(dir, 0o700); err != nil {
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
		return nil, fmt.Errorf("%w: root may not run it, and there is no user for it: %w", ErrNoProgram, err)
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers on every Unix
	gid, _ := strconv.Atoi(u.Gid)
	s.account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return s, os.Chown(dir, uid, gid)
}

// exec returns a command in the server's folder, by which the guard finds it. It has its own
// session, so a signal from the terminal does not reach it.
func (s *Server) exec(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+s.dir, "HOME="+s.dir, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account, Setsid: true}
	return cmd
}

// setUp makes the files of the server.
func (s *Server) setUp(argv ...string) error {
	if out, err := s.exec(argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, cli.OneLine(string(out), 500))
	}
	return nil
}

// answerLimit is how long a server may take to answer, recovery from a kill included.
const answerLimit = 60 * time.Second

// Start starts the server and waits until ping succeeds. A server ends at once if its predecessor
// has not quite ended; Start then starts it again.
func (s *Server) Start(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	for {
		if err := s.launch(); err != nil {
			return err
		}
		if s.answers(ctx, ping) {
			return nil
		}
		if ctx.Err() != nil {
			s.Kill()
			return fmt.Errorf("%s does not answer: %s", s.Name, cli.OneLine(s.log.String(), 1000))
		}
		cli.Pause(ctx, 20*time.Millisecond)
	}
}

func (s *Server) launch() error {
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

// answers waits until ping succeeds. It returns false if the server or ctx has ended.
func (s *Server) answers(ctx context.Context, ping func(context.Context) error) bool {
	for {
		if ping(ctx) == nil {
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

// Kill kills the server with SIGKILL and waits for its end.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
	}
}
