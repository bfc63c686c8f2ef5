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

// A Server is what a pool's end can be tied to. *http.Server is one. A Server
// of another kind may have a method Idle() <-chan struct{} whose channel closes
// when the requests that were in flight at its shutdown have ended.
type Server interface {
	RegisterOnShutdown(f func())
}

// AttachToServer starts the pool and ties its end to s: when s shuts down, the
// requests in flight still get their answers from the pool, which drains once
// they have ended, at the latest after DrainTimeout. It is called once, before s
// serves. Like Start it is where a re-executed worker becomes one.
//
// For an *http.Server the pool chains ConnState; a host that has one sets it
// before. Hijacked connections are not waited for. Server.Close ends no pool.
// http.Server.Shutdown does not wait for the pool: call Task.Shutdown after it.
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
		// Whoever calls Shutdown as well gets the same error; the supervisor has logged it.
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

// idleOf returns what says, from the shutdown's beginning on, that s has no
// request in flight any more.
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

// connections counts an http.Server's open connections. In a shutdown the
// server closes the idle ones itself and accepts no new one, so that the last
// one to go carried the last request.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
	none chan struct{} // closed when open is empty; nil before idle is called
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
