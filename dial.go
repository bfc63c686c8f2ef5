package task

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/taskd-go/task/internal/client"
	"github.com/taskd-go/task/internal/supervisor"
)

// A Client calls the pool of another process of the same user. Dial makes one. Its methods are safe
// for concurrent use.
type Client struct {
	calls
	cfg    Config
	ctx    context.Context // ended by Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the goroutines that attach and detach

	mu     sync.Mutex
	closed bool
	link   *link       // nil: the pool is away
	next   *attachment // nil: none is under way
}

// A link is the connection to one run of the pool.
type link struct {
	pool  *supervisor.Attachment
	calls deliverer
}

// An attachment is an attempt to attach again. All calls wait for the same one.
type attachment struct {
	over chan struct{} // closed when the attempt has ended and one of these is set
	link *link
	err  error
}

// attachLimit bounds an attempt to attach to a pool that does not answer.
const attachLimit = time.Second

// Dial connects to the running pool that cfg's TempDir and ServerName name. Of the other fields
// only PushTimeout counts. ctx bounds Dial only. While no pool has this name, new calls fail with
// ErrSockTimeout and NotRun; the Client connects to the next one by itself.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg}
	c.calls = calls{c.cfg.PushTimeout, c.find}
	l, err := c.dial(ctx)
	if err != nil {
		return nil, refused(ErrSockTimeout, err, "dial pool %s in %s: %v", cfg.ServerName, cfg.TempDir, err)
	}
	c.link = l
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// dial attaches within the deadline of ctx, else within PushTimeout: the kernel connects to a pool
// whose parent is stopped, and then nothing answers.
func (c *Client) dial(ctx context.Context) (*link, error) {
	if _, bounded := ctx.Deadline(); !bounded && c.cfg.PushTimeout > 0 {
		late := fmt.Errorf("the pool's parent did not answer within %v: %w", c.cfg.PushTimeout, os.ErrDeadlineExceeded)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.cfg.PushTimeout, late)
		defer cancel()
	}
	return c.attach(ctx)
}

func (c *Client) attach(ctx context.Context) (*link, error) {
	pool, err := supervisor.Attach(ctx, c.cfg.TempDir, c.cfg.ServerName)
	if err != nil {
		return nil, err
	}
	return &link{pool: pool, calls: deliverer{registered: pool.Own, client: client.New(client.Config{
		Table:          pool.Table,
		SocketPath:     func(i int) string { return supervisor.SocketPath(c.cfg.TempDir, c.cfg.ServerName, i) },
		MaxPackageSize: pool.Settings.MaxPackageSize,
		Describe:       supervisor.Describe,
	})}}, nil
}

// current returns the link to the pool that runs now or, without one, the attempt to attach, which
// it begins if none is under way.
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
		c.tasks.Go(func() { c.attachAgain(next) })
	}
	return nil, c.next, nil
}

func (c *Client) attachAgain(a *attachment) {
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

// unlink drops the link. Calls in flight end when the workers have drained, or at Close.
func (c *Client) unlink() {
	l := c.link
	c.link = nil
	c.tasks.Go(func() {
		// This error only counts the calls that Close ended; each of them has an error of its own.
		_ = l.calls.client.Close(c.ctx)
		_ = l.pool.Close()
	})
}

// find returns the deliverer for the pool that runs now. Without one it waits for an attempt to
// attach, at most for timeout.
func (c *Client) find(ctx context.Context, timeout time.Duration) (d deliverer, waited time.Duration, err error) {
	l, next, err := c.current()
	if err != nil {
		return deliverer{}, 0, err
	}
	if l != nil {
		return l.calls, 0, nil
	}
	began := time.Now()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, os.ErrDeadlineExceeded)
		defer cancel()
	}
	select {
	case <-next.over:
		err = next.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return deliverer{}, 0, refused(
			ErrSockTimeout,
			err,
			"pool %s in %s is away: %v",
			c.cfg.ServerName,
			c.cfg.TempDir,
			err,
		)
	}
	return next.link.calls, time.Since(began), nil
}

// Status lists the pool's workers by index. It returns nil while the pool is away.
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

// Close closes the client's connections. Calls in flight fail; the pool runs on.
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
