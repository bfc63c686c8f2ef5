package main

import (
	"errors"
	"fmt"
	"net"
)

// workers is how many processes each contender has.
const workers = 2

// A contender is one way to have a call answered by another process.
type contender struct {
	name string
	// serve answers on l in a process of the contender's own, until that is
	// ended. Nil: the contender starts its processes itself, or has none.
	serve func(l net.Listener) error
	// open connects to the sockets, one for each process that serves.
	open func(sockets []string) (session, error)
}

// A session is a contender that is ready for calls.
type session struct {
	// caller makes the call that caller number i repeats; a nil call: the
	// contender has none of that kind. Calls of different callers run at the same time.
	caller func(i int, c benchCase, payload []byte) (call func() error, err error)
	close  func() error
}

const (
	nameOurs   = "this pool"
	nameEcho   = "bare echo, a connection per call"
	nameMux    = "bare echo, multiplexed"
	nameNetRPC = "net/rpc"
	nameAnts   = "ants (goroutines, same process)"
)

// contenders lists them in the order of the report. The pool is the first, so
// that its idle processes can be watched before there are others.
func contenders() []contender {
	return []contender{
		{name: nameOurs, open: openPool},
		{name: nameEcho, serve: serveEcho, open: openEcho},
		{name: nameMux, serve: serveMux, open: openMux},
		{name: nameNetRPC, serve: serveNetRPC, open: openNetRPC},
	}
}

type running struct {
	contender
	session
	processes []*process
}

type sessions []running

// open starts every contender. Those that are open when it fails are returned, to be closed.
func open(field []contender) (sessions, float64, error) {
	var open sessions
	idle := notMeasured
	for _, c := range field {
		r := running{contender: c}
		var sockets []string
		for i := range workers {
			if c.serve == nil {
				break
			}
			p, err := startProcess(c.name, i)
			if err != nil {
				return open, idle, fmt.Errorf("%s: %w", c.name, err)
			}
			r.processes = append(r.processes, p)
			sockets = append(sockets, p.socket)
		}
		s, err := c.open(sockets)
		if err != nil {
			for _, p := range r.processes {
				p.end()
			}
			return open, idle, fmt.Errorf("%s: %w", c.name, err)
		}
		r.session = s
		open = append(open, r)
		if c.name == nameOurs {
			idle = watchIdle()
		}
	}
	return open, idle, nil
}

func (s sessions) close() error {
	var errs []error
	for _, r := range s {
		errs = append(errs, r.session.close())
		for _, p := range r.processes {
			p.end()
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
	if len(got) == 0 {
		return nil
	}
	if got[0] != payload[0] || got[len(got)-1] != payload[len(payload)-1] {
		return errWrongEcho
	}
	return nil
}
