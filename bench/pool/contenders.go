package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/taskd-go/task/bench/internal/measure"
	"github.com/taskd-go/task/bench/internal/process"
)

const (
	workers    = 2  // processes of each contender
	maxCallers = 64 // most callers of any case
)

// A contender is one way to have a call answered by another process.
type contender struct {
	name string
	// serve answers calls in a separate process until that ends. It is nil if the contender has no
	// processes or starts them itself.
	serve func() error
	// own is true if open starts the processes and takes no sockets.
	own bool
	// open connects to the sockets of the serving processes.
	open func(sockets []string) (session, error)
}

// A session makes the calls of an open contender.
type session struct {
	caller measure.Calls
	close  func() error
}

const (
	nameOurs   = "this pool"
	nameEcho   = "bare echo, a connection per caller"
	nameMux    = "bare echo, multiplexed"
	nameNetRPC = "net/rpc"
	nameAnts   = "ants (goroutines, same process)"
)

// contenders returns all contenders in the order of the report.
func contenders() []contender {
	return []contender{
		{name: nameOurs, own: true, open: openPool},
		{name: nameEcho, serve: onListener(serveEcho), open: openEcho},
		{name: nameMux, serve: onListener(serveMux), open: openMux},
		{name: nameNetRPC, serve: onListener(serveNetRPC), open: openNetRPC},
		{name: "ttrpc", serve: onListener(serveTTRPC), open: openTTRPC},
		{name: "drpc", serve: onListener(serveDRPC), open: openDRPC},
		{name: "gRPC", serve: onListener(serveGRPC), open: openGRPC},
		{name: namePluginRPC, own: true, serve: servePlugin, open: openPluginRPC},
		{name: namePluginGRPC, own: true, serve: servePluginGRPC, open: openPluginGRPC},
		{name: nameAnts, own: true, open: openAnts},
	}
}

// A running contender is open, with its processes.
type running struct {
	name string
	session
	processes []*process.Process
}

type sessions []running

// open starts all contenders. If one fails, it returns the others, which the caller must close.
func open(selected []contender) (sessions, error) {
	var all sessions
	for _, c := range selected {
		r, err := c.start()
		all = append(all, r)
		if err != nil {
			return all, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return all, nil
}

func (c contender) start() (running, error) {
	r := running{name: c.name}
	var sockets []string
	for range workers {
		if c.own {
			break
		}
		p, err := process.Start(c.name)
		if err != nil {
			return r, err
		}
		r.processes = append(r.processes, p)
		sockets = append(sockets, p.Socket)
	}
	var err error
	r.session, err = c.open(sockets)
	return r, err
}

func (s sessions) close() error {
	var errs []error
	for _, r := range s {
		if r.session.close != nil {
			errs = append(errs, r.session.close())
		}
		for _, p := range r.processes {
			p.Stop()
		}
	}
	return errors.Join(errs...)
}

// errWrongEcho is the error of an answer that is not the payload.
var errWrongEcho = errors.New("the answer is not the payload")

// same compares only the length, the first and the last byte: comparing all would measure the
// memory's speed.
func same(got, payload []byte) error {
	if len(got) != len(payload) {
		return errWrongEcho
	}
	if n := len(got); n > 0 && (got[0] != payload[0] || got[n-1] != payload[n-1]) {
		return errWrongEcho
	}
	return nil
}

// serve serves the contender with the name.
func serve(name string) error {
	for _, c := range contenders() {
		if c.name == name {
			return c.serve()
		}
	}
	return fmt.Errorf("there is no contender %q", name)
}

// onListener returns a serve function that passes this process's listener to serve.
func onListener(serve func(net.Listener) error) func() error {
	return func() error {
		l, err := process.Listener()
		if err != nil {
			return err
		}
		return serve(l)
	}
}

// accept calls serve for each connection of l, in a new goroutine.
func accept(l net.Listener, serve func(net.Conn)) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go serve(c)
	}
}
