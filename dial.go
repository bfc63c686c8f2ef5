package task

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/taskd-go/task/internal/client"
	"github.com/taskd-go/task/internal/supervisor"
	"github.com/taskd-go/task/protocol"
)

// A Client calls a pool of another process of the same user. Its methods are
// safe for concurrent use.
type Client struct {
	cfg    Config
	ctx    context.Context // ended by Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // attaching, and letting go of pools that are gone

	mu     sync.Mutex
	closed bool
	link   *link       // nil: the pool is away
	next   *attachment // nil: none is under way
}

// A link is one attachment to one run of the pool.
type link struct {
	pool  *supervisor.Attachment
	calls deliverer
}

// An attachment is an attempt to attach anew, which all calls share.
type attachment struct {
	over chan struct{} // closed when it has ended, with one of the two
	link *link
	err  error
}

// attachLimit is for a pool that is there and does not answer.
const attachLimit = time.Second

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
	c.ctx, c.cancel = context.WithCancel(context.Background())
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

// current returns the link to the pool that runs now, or the attempt to get one, which it begins
// when the pool before is gone.
func (c *Client) current() (*link, *attachment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, refused(ErrProcessBusy, ErrClosed, "the client is closed")
	}
	if c.link != nil {
		select {
		case <-c.link.pool.Gone:
			c.unlink()
		default:
			return c.link, nil, nil
		}
	}
	if c.next == nil {
		next := &attachment{over: make(chan struct{})}
		c.next = next
		c.tasks.Go(func() { c.attachAnew(next) })
	}
	return nil, c.next, nil
}

func (c *Client) attachAnew(a *attachment) {
	ctx, cancel := context.WithTimeout(c.ctx, attachLimit)
	defer cancel()
	a.link, a.err = c.attach(ctx)
	close(a.over)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.next = a.link, nil
	if c.link != nil && c.closed {
		c.unlink()
	}
}

// unlink lets go of a pool that is gone: calls in flight end as its workers drain, or with Close.
func (c *Client) unlink() {
	l := c.link
	c.link = nil
	c.tasks.Go(func() {
		// What it cut off is known to the callers.
		_ = l.calls.client.Close(c.ctx)
		_ = l.pool.Close()
	})
}

// caller returns what sends calls to the pool that runs now. It waits until that is attached to, as long as
// the call may take; opts are the call's for what is left of its time.
func (c *Client) caller(ctx context.Context, timeout time.Duration, opts []CallOption) (deliverer, []CallOption, error) {
	l, next, err := c.current()
	if err != nil {
		return deliverer{}, nil, err
	}
	if l != nil {
		return l.calls, opts, nil
	}
	o := optionsOf(timeout, opts)
	began := time.Now()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, os.ErrDeadlineExceeded)
		defer cancel()
	}
	select {
	case <-next.over:
		err = next.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return deliverer{}, nil, refused(ErrSockTimeout, err, "pool %s in %s is away: %v", c.cfg.ServerName, c.cfg.TempDir, err)
	}
	if o.timeout > 0 {
		opts = append(slices.Clip(opts), WithTimeout(max(o.timeout-time.Since(began), 1)))
	}
	return next.link.calls, opts, nil
}

// Async is Task.Async in the other process's pool.
func (c *Client) Async(ctx context.Context, r Runner, opts ...CallOption) (taskID uint64, err error) {
	d, opts, err := c.caller(ctx, c.cfg.PushTimeout, opts)
	if err != nil {
		return 0, err
	}
	return d.async(ctx, c.cfg.PushTimeout, r, opts)
}

// Sync is Task.Sync in the other process's pool.
func (c *Client) Sync(ctx context.Context, r Runner, opts ...CallOption) (Result, error) {
	d, opts, err := c.caller(ctx, defaultSyncTimeout, opts)
	if err != nil {
		return Result{}, err
	}
	return d.sync(ctx, r, opts)
}

// AsyncMany is Task.AsyncMany in the other process's pool.
func (c *Client) AsyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, opts, err := c.caller(ctx, c.cfg.PushTimeout, opts)
	if err != nil {
		return none(len(rs), err)
	}
	return d.many(ctx, protocol.Async, c.cfg.PushTimeout, rs, opts)
}

// SyncMany is Task.SyncMany in the other process's pool.
func (c *Client) SyncMany(ctx context.Context, rs []Runner, opts ...CallOption) []Outcome {
	d, opts, err := c.caller(ctx, defaultSyncTimeout, opts)
	if err != nil {
		return none(len(rs), err)
	}
	return d.many(ctx, protocol.Sync, defaultSyncTimeout, rs, opts)
}

// Status lists the pool's workers by index; nil when the pool is away.
func (c *Client) Status() []WorkerStatus {
	l, next, err := c.current()
	if next != nil {
		<-next.over
		l, err = next.link, next.err
	}
	if err != nil || l == nil {
		return nil
	}
	return l.pool.Table.Status()
}

// Close ends the client's connections; calls in flight fail. The pool goes on.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.cancel()
	if c.link != nil {
		c.unlink()
	}
	c.mu.Unlock()
	c.tasks.Wait()
	return nil
}
