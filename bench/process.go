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

// A process is a copy of this program that serves a contender. It ends with
// this program, because its standard input then does.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	dir    string
	socket string
}

// startProcess listens for the process, which therefore can be dialled at once.
func startProcess(contender string, index int) (*process, error) {
	dir, err := os.MkdirTemp("/tmp", "bench-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, socket: filepath.Join(dir, fmt.Sprintf("%d.sock", index))}
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
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(self)
	p.cmd.Env = append(os.Environ(), envServe+"="+contender)
	p.cmd.ExtraFiles = []*os.File{f}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	return p.cmd.Start()
}

func (p *process) end() {
	p.stdin.Close()
	// How it ends is of no interest: all its calls have been answered.
	_ = p.cmd.Wait()
	os.RemoveAll(p.dir)
}

// serveIfPeer serves, and does not return, in a process that startProcess started.
func serveIfPeer() {
	name := os.Getenv(envServe)
	if name == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for _, c := range contenders() {
		if c.name != name {
			continue
		}
		l, err := net.FileListener(os.NewFile(3, "listener"))
		if err == nil {
			err = c.serve(l)
		}
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
	}
	os.Exit(1)
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

// dialAll connects to each socket and makes a client of each connection.
func dialAll[T any](sockets []string, client func(net.Conn) T) ([]T, error) {
	var clients []T
	for _, s := range sockets {
		c, err := net.Dial("unix", s)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client(c))
	}
	return clients, nil
}
