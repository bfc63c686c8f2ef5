package task

import (
	"context"
	"fmt"
	"sync"

	"github.com/taskd-go/task/internal/client"
	"github.com/taskd-go/task/internal/supervisor"
	"github.com/taskd-go/task/protocol"
)

// A Client calls a pool of another process of the same user. Its methods are
// safe for concurrent use.
type Client struct {
	cfg Config

	mu     sync.Mutex
	closed bool
	link   *link // nil: the pool is away
}

// A link is one attachment to one run of the pool.
type link struct {
	pool  *supervisor.Attachment
	calls deliverer
}

// Dial connects to the running pool that cfg's TempDir and ServerName name. The
// other fields are the pool's own and do not count here, but for PushTimeout.
// When the pool restarts under its name, calls fail NotRun until it is back.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg}
	l, err := c.attach(ctx)
	if err != nil {
		return nil, fmt.Errorf("task: dial pool %s in %s: %w", cfg.ServerName, cfg.TempDir, err)
	}
	c.link = l
	return c, nil
}

func (c *Client) attach(ctx context.Context) (*link, error) {
	pool, err := supervisor.Attach(ctx, c.cfg.TempDir, c.cfg.ServerName)
	if err != nil {
		return nil, err
	}
	return &link{pool: pool, calls: deliverer{client: client.New(client.Config{
		Table:          pool.Table,
		SocketPath:     func(i int) string { return supervisor.SocketPath(c.cfg.TempDir, c.cfg.ServerName, i) },
		MaxPackageSize: pool.Settings.MaxPackageSize,
		Describe:       supervisor.Describe,
	})}}, nil
}

// caller returns what sends calls to the pool that runs now, attaching to it
// anew when the one before is gone.
func (c *Client) caller(ctx context.Context) (deliverer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return deliverer{}, refused(ErrProcessBusy, ErrClosed, "the client is closed")
	}
	if c.link != nil {
		select {
		case <-c.link.pool.Gone:
			c.unlink()
		default:
			return c.link.calls, nil
		}
	}
	l, err := c.attach(ctx)
	if err != nil {
		return deliverer{}, refused(ErrSockTimeout, err, "pool %s in %s is away: %v", c.cfg.ServerName, c.cfg.TempDir, err)
	}
	c.link = l
	return l.calls, nil
}

// unlink lets go of a pool that is gone. The calls in flight end by themselves.
func (c *Client) unlink() {
	l := c.link
	c.link = nil
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.calls.client.Close(ctx)
	_ = l.pool.Close()
}

// Async is Task.Async in the other process's pool.
func (c *Client) Async(ctx context.Context, r Runner, opts ...CallOption) (taskID uint64, err error) {
	d, err := c.caller(ctx)
	if err != nil {
		return 0, err
	}
	return d.async(ctx, c.cfg.PushTimeout, r, opts)
}

// Sync is Task.Sync in the other process's pool.
func (c *Client) Sync(ctx context.Context, r Runner, opts ...CallOption) (Result, error) {
	d, err := c.caller(ctx)
	if err != nil {
		return Result{}, err
	}
	return d.sync(ctx, r, opts)
}

// AsyncMany is Task.AsyncMany in the other process's pool.
func (c *Client) AsyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, err := c.caller(ctx)
	if err != nil {
		return none(len(rs), err)
	}
	return d.many(ctx, protocol.Async, c.cfg.PushTimeout, rs, opts)
}

// SyncMany is Task.SyncMany in the other process's pool.
func (c *Client) SyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, err := c.caller(ctx)
	if err != nil {
		return none(len(rs), err)
	}
	return d.many(ctx, protocol.Sync, defaultSyncTimeout, rs, opts)
}

// Status lists the pool's workers by index; nil when the pool is away.
func (c *Client) Status() []WorkerStatus {
	if _, err := c.caller(context.Background()); err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return nil
	}
	return workerStatuses(c.link.pool.Table.Status())
}

// Close ends the client's connections; calls in flight fail. The pool goes on.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.link != nil {
		c.unlink()
	}
	return nil
}
