package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// A Spawn says how to start a process.
type Spawn struct {
	Exe   *os.File   // executed through its descriptor (Linux): its path may have been replaced or deleted
	Argv  []string   // Argv[0] is the process title
	Env   []string   // NAME=value; nil: none
	Files []*os.File // descriptors 0, 1, 2, 3 …; nil: closed
}

// A Process is a handle of a child process that leads its own process group. Signals go through the
// handle, never to a pid that may belong to another process by now. Its methods are safe for
// concurrent use.
type Process struct {
	proc *os.Process
	exit exitWatch

	mu     sync.Mutex // held while a signal is sent, so that the process is not reaped meanwhile
	reaped bool
	state  ExitState
	known  bool
}

// An ExitState says how a process ended.
type ExitState struct {
	Code     int // if the process exited by itself
	Signal   int // the signal that ended the process, or 0
	CoreDump bool
}

// Start starts a process. An error (no more processes, no memory) leaves nothing behind; the caller
// may try again.
func Start(s Spawn) (*Process, error) {
	if len(s.Argv) == 0 {
		return nil, errors.New("start a process: Argv must not be empty")
	}
	path, release, err := executable(s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	defer release()
	env := s.Env
	if env == nil {
		env = []string{} // nil would mean the environment of this process
	}
	fds, err := numbers(s.Files)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	pidfd := wantPidFD(attr)
	pid, _, err := syscall.StartProcess(path, s.Argv, &syscall.ProcAttr{Env: env, Files: fds, Sys: attr})
	runtime.KeepAlive(s.Files)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	proc, err := os.FindProcess(pid)
	if err != nil { // never on a Unix system
		return nil, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	return &Process{proc: proc, exit: newExitWatch(pid, pidfd)}, nil
}

// numbers returns the descriptors of files. os.StartProcess would call File.Fd, which makes a
// descriptor blocking, even that of a listener that other processes share.
func numbers(files []*os.File) ([]uintptr, error) {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = ^uintptr(0)
		if f == nil {
			continue
		}
		if err := WithFD(f, func(fd int) error { fds[i] = uintptr(fd); return nil }); err != nil {
			return nil, err
		}
	}
	return fds, nil
}

// PID returns the process id. After Reap it may belong to another process.
func (p *Process) PID() int { return p.proc.Pid }

// Signal sends sig to the process, not to its group. After Reap the error is os.ErrProcessDone.
func (p *Process) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return p.proc.Signal(sig)
}

// KillGroup sends SIGKILL to the whole process group. After Reap it does nothing.
func (p *Process) KillGroup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.exit.killGroup()
	}
}

// Exited waits until the process has ended, without reaping it. On Linux the wait blocks no thread.
func (p *Process) Exited() { p.exit.wait() }

// Reap waits for the end of the process, kills the rest of its process group, and reaps it. ok is
// false if other code reaped the process, so that its state is unknown. Later calls return the
// same.
func (p *Process) Reap() (state ExitState, ok bool) {
	p.exit.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return p.state, p.known
	}
	p.exit.killGroup()
	ended, err := p.proc.Wait()
	p.reaped = true
	p.exit.close()
	if err != nil {
		return ExitState{}, false
	}
	status, ok := ended.Sys().(syscall.WaitStatus)
	if !ok {
		return ExitState{}, false
	}
	p.known = true
	if status.Signaled() {
		p.state = ExitState{Signal: int(status.Signal()), CoreDump: status.CoreDump()}
	} else {
		p.state = ExitState{Code: status.ExitStatus()}
	}
	return p.state, true
}
