package task

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Server runs functions when it shuts down. *http.Server is one. Another Server may have a method
// Idle() <-chan struct{}, whose channel closes when the requests that were in flight at the
// shutdown have ended.
type Server interface {
	RegisterOnShutdown(f func())
}

// AttachToServer starts the pool and shuts it down with s. When s shuts down, requests in flight
// still get their answers from the pool, which drains when they have ended, at the latest after
// DrainTimeout. Call AttachToServer once, before s serves. In a worker process it runs the worker
// and does not return, as Start does.
//
// For an *http.Server the pool wraps ConnState: set your own before the call. The pool does not
// wait for hijacked connections, and Server.Close does not shut it down. http.Server.Shutdown does
// not wait for the pool: call Task.Shutdown after it.
func (t *Task) AttachToServer(s Server) error {
	t.mu.Lock()
	again := t.attached
	t.attached = true
	t.mu.Unlock()
	if again {
		return fmt.Errorf("task: pool %s is attached to a server already", t.cfg.ServerName)
	}
	if s == nil {
		return errors.New("task: AttachToServer(nil): there is no server")
	}
	if err := t.Start(context.Background()); err != nil {
		return err
	}
	idle := idleOf(s)
	s.RegisterOnShutdown(func() {
		t.waitIdle(idle())
		// A caller of Task.Shutdown gets the same error; the supervisor has logged it.
		_ = t.Shutdown(context.Background())
	})
	return nil
}

func (t *Task) waitIdle(idle <-chan struct{}) {
	if t.cfg.DrainTimeout < 0 {
		<-idle
		return
	}
	limit := time.NewTimer(t.cfg.DrainTimeout)
	defer limit.Stop()
	select {
	case <-idle:
	case <-limit.C:
	}
}

// idleOf returns a function to call at the shutdown of s. The channel that it returns closes when s
// has no request in flight.
func idleOf(s Server) func() <-chan struct{} {
	switch s := s.(type) {
	case *http.Server:
		var conns connections
		chained := s.ConnState
		s.ConnState = func(c net.Conn, state http.ConnState) {
			conns.note(c, state)
			if chained != nil {
				chained(c, state)
			}
		}
		return conns.idle
	case interface{ Idle() <-chan struct{} }:
		return s.Idle
	default:
		now := make(chan struct{})
		close(now)
		return func() <-chan struct{} { return now }
	}
}

// connections counts the open connections of an http.Server. A server that shuts down closes its
// idle connections and accepts no more, so the last one to close carried the last request.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
	none chan struct{} // closed when open is empty; nil until idle is called
}

func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = map[net.Conn]struct{}{}
		}
		c.open[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
	c.announce()
}

func (c *connections) idle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.none = make(chan struct{})
	c.announce()
	return c.none
}

func (c *connections) announce() {
	if c.none == nil || len(c.open) > 0 {
		return
	}
	select {
	case <-c.none:
	default:
		close(c.none)
	}
}
