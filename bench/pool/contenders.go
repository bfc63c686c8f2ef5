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
	maxCallers = 64 // of any case
)

// A contender is one way to have a call answered by another process.
type contender struct {
	name string
	// serve answers in a process of the contender's own, until that is ended. Nil: it has none, or
	// starts them by itself.
	serve func() error
	// own: open starts the processes, and gets no sockets.
	own bool
	// open connects to the sockets, one for each process that serves.
	open func(sockets []string) (session, error)
}

// A session is a contender that is ready for calls.
type session struct {
	caller measure.Calls
	close  func() error
}

const (
	nameOurs   = "this pool"
	nameEcho   = "bare echo, a connection per call"
	nameMux    = "bare echo, multiplexed"
	nameNetRPC = "net/rpc"
	nameAnts   = "ants (goroutines, same process)"
)

// contenders lists them in the order of the report.
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

// A running contender has its processes.
type running struct {
	name string
	session
	processes []*process.Process
}

type sessions []running

// open starts every contender. Those that are open when one fails are returned, to be closed.
func open(field []contender) (sessions, error) {
	var all sessions
	for _, c := range field {
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

// errWrongEcho is the answer of a contender that did not send the payload back.
var errWrongEcho = errors.New("the answer is not the payload")

// same compares as little as shows a mistake: comparing all would measure memory.
func same(got, payload []byte) error {
	if len(got) != len(payload) {
		return errWrongEcho
	}
	if n := len(got); n > 0 && (got[0] != payload[0] || got[n-1] != payload[n-1]) {
		return errWrongEcho
	}
	return nil
}

// serve serves the contender of the name.
func serve(name string) error {
	for _, c := range contenders() {
		if c.name == name {
			return c.serve()
		}
	}
	return fmt.Errorf("there is no contender %q", name)
}

// onListener is the serve of a contender that is given its listener.
func onListener(serve func(net.Listener) error) func() error {
	return func() error {
		l, err := process.Listener()
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
