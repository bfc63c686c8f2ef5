package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// ErrClosed is the cause of a call's failure after the pool has closed.
var ErrClosed = errors.New("the pool is closed")

// Config describes the pool that a Client calls.
type Config struct {
	Table          *sharedstate.Table
	SocketPath     func(index int) string
	MaxPackageSize int // bytes of a whole frame; 0: protocol.DefaultPackageSize
	// Describe returns how a worker ended, for messages ("killed by signal 9 (SIGKILL)"). It may be
	// nil.
	Describe func(sharedstate.End) string
}

// A Client holds the connections to all workers of one pool. Its methods are safe for concurrent
// use.
type Client struct {
	cfg        Config
	table      *sharedstate.Table
	chooser    *sharedstate.Chooser
	conns      []workerConns // by worker index
	calls      gate
	frames     frames
	waiters    waiters
	background sync.WaitGroup // goroutines that serve several calls
	deadlines  *deadlineTimer
	serial     atomic.Uint32 // the high half of the newest connection's ids
	cut        chan struct{} // closed when Close no longer waits for calls in flight
	cutOnce    sync.Once
}

// New returns a Client of the pool that cfg describes. It opens no connection. The table must stay
// mapped until Close has returned.
func New(cfg Config) *Client {
	if cfg.MaxPackageSize == 0 {
		cfg.MaxPackageSize = protocol.DefaultPackageSize
	}
	c := &Client{
		cfg:       cfg,
		table:     cfg.Table,
		chooser:   sharedstate.NewChooser(cfg.Table),
		conns:     make([]workerConns, cfg.Table.Workers()),
		calls:     gate{empty: make(chan struct{})},
		deadlines: newDeadlineTimer(),
		cut:       make(chan struct{}),
	}
	c.serial.Store(rand.Uint32())
	return c
}

// Close waits for the calls in flight and closes the connections. New calls and calls that wait for
// a slot fail with ErrClosed. When ctx ends, the calls that are still in flight fail as lost, with
// ErrClosed as their cause, and Close returns an error that wraps ctx's. When Close returns, no
// call is left and the table is no longer used. Close may be called more than once.
func (c *Client) Close(ctx context.Context) error {
	c.calls.close()
	c.chooser.Close()
	var err error
	select {
	case <-c.calls.empty:
	default:
		select {
		case <-c.calls.empty:
		case <-ctx.Done():
			err = fmt.Errorf("%d calls in flight were cut off: %w", c.calls.inside(), ctx.Err())
		}
	}
	c.cutOnce.Do(func() { close(c.cut) })
	c.deadlines.close()
	<-c.calls.empty
	c.background.Wait()
	return err
}

// A gate counts the calls that are inside. A closed gate lets no call in.
type gate struct {
	state atomic.Int64 // calls inside, plus gateClosed once it is closed
	once  sync.Once
	empty chan struct{} // closed when the gate is closed and no call is inside
}

const gateClosed = -1 << 62

func (g *gate) enter() bool {
	if g.state.Add(1) < 0 {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() {
	if g.state.Add(-1) == gateClosed {
		g.once.Do(func() { close(g.empty) })
	}
}

func (g *gate) close() {
	for {
		n := g.state.Load()
		if n < 0 {
			return
		}
		if g.state.CompareAndSwap(n, n+gateClosed) {
			if n == 0 {
				g.once.Do(func() { close(g.empty) })
			}
			return
		}
	}
}

func (g *gate) closed() bool { return g.state.Load() < 0 }

func (g *gate) inside() int64 {
	n := g.state.Load()
	if n < 0 {
		n -= gateClosed
	}
	return n
}
