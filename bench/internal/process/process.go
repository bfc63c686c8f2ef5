// Package process starts copies of the program that serve a contender and end with the program.
package process

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// envServe is the environment variable with the contender that a copy of the program serves.
const envServe = "BENCH_SERVE"

// Descriptors of a copy. The lifeline is a pipe whose end ends the copy.
const (
	fdLifeline = 3
	fdListener = 4
)

// Command returns the command of a copy that serves the contender, and a Closer that ends the copy.
// After the start the caller closes the command's first extra file.
func Command(contender string, more ...*os.File) (*exec.Cmd, io.Closer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	lifeline, end, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envServe+"="+contender)
	cmd.ExtraFiles = append([]*os.File{lifeline}, more...)
	cmd.Stderr = os.Stderr
	return cmd, end, nil
}

// A Process is a copy of the program that serves a contender on a socket.
type Process struct {
	cmd    *exec.Cmd
	end    io.Closer
	dir    string
	Socket string
}

// Start starts a process. It listens for the process, so that callers can connect at once.
func Start(contender string) (*Process, error) {
	dir, err := os.MkdirTemp("/tmp", "bench-")
	if err != nil {
		return nil, err
	}
	p := &Process{dir: dir, Socket: filepath.Join(dir, "socket")}
	if err := p.start(contender); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

func (p *Process) start(contender string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.Socket, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	f, err := l.File()
	if err != nil {
		return err
	}
	defer f.Close()
	if p.cmd, p.end, err = Command(contender, f); err != nil {
		return err
	}
	defer p.cmd.ExtraFiles[0].Close()
	return p.cmd.Start()
}

// Stop ends the process and waits for it.
func (p *Process) Stop() {
	p.end.Close()
	// The exit status does not matter: all calls have been answered.
	_ = p.cmd.Wait()
	os.RemoveAll(p.dir)
}

// Served returns the contender that this process is to serve. ok is false in the main process. A
// copy ends with the program that started it.
func Served() (contender string, ok bool) {
	contender, ok = os.LookupEnv(envServe)
	if !ok {
		return "", false
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(fdLifeline, "lifeline"))
		os.Exit(0)
	}()
	return contender, true
}

// Listener returns the listener that Start opened for this process.
func Listener() (net.Listener, error) { return net.FileListener(os.NewFile(fdListener, "listener")) }
