package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// envServe names the contender that a re-executed copy of this program serves.
const envServe = "BENCH_SERVE"

// Descriptors of a re-executed copy. The lifeline ends when this program does,
// and the copy with it.
const (
	fdLifeline = 3
	fdListener = 4
)

// copyOf is the command that serves the contender, and what ends it.
func copyOf(contender string, more ...*os.File) (*exec.Cmd, io.Closer, error) {
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

// A process is a copy of this program that serves a contender on a socket.
type process struct {
	cmd    *exec.Cmd
	end    io.Closer
	dir    string
	socket string
}

// startProcess listens for the process, which therefore can be dialled at once.
func startProcess(contender string) (*process, error) {
	dir, err := os.MkdirTemp("/tmp", "bench-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, socket: filepath.Join(dir, "socket")}
	if err := p.start(contender); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

func (p *process) start(contender string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket, Net: "unix"})
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
	if p.cmd, p.end, err = copyOf(contender, f); err != nil {
		return err
	}
	defer p.cmd.ExtraFiles[0].Close()
	return p.cmd.Start()
}

func (p *process) stop() {
	p.end.Close()
	// How it ends is of no interest: all its calls have been answered.
	_ = p.cmd.Wait()
	os.RemoveAll(p.dir)
}

// serveIfPeer serves, and does not return, in a process that copyOf was started as.
func serveIfPeer() {
	name := os.Getenv(envServe)
	if name == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(fdLifeline, "lifeline"))
		os.Exit(0)
	}()
	if os.Getenv(envPlace) != "" {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, serveQueue(name))
		os.Exit(1)
	}
	for _, c := range contenders() {
		if c.name == name {
			if err := c.serve(); err != nil {
				fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
			}
		}
	}
	os.Exit(1)
}

// onListener is the serve of a contender that is given its listener.
func onListener(serve func(net.Listener) error) func() error {
	return func() error {
		l, err := net.FileListener(os.NewFile(fdListener, "listener"))
		if err != nil {
			return err
		}
		return serve(l)
	}
}

// accept hands every connection of l to serve, each in a goroutine.
func accept(l net.Listener, serve func(net.Conn)) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go serve(c)
	}
}
