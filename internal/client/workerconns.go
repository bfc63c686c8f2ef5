package client

import (
	"sync"

	"github.com/taskd-go/task/sharedstate"
)

// maxIdle is how many idle connections to one worker are kept for later calls.
const maxIdle = 64

// workerConns are the connections to the worker process of one index. All belong to one generation.
type workerConns struct {
	mu         sync.Mutex
	generation uint64       // of the connections that are kept
	idle       []*exclusive // a stack: the last one used is used next
	shared     *shared
	opening    chan struct{} // closed when the attempt to open shared ends; nil: there is no attempt
}

// takeIdle returns an idle connection to the given generation, or nil. It drops those of earlier
// ones.
func (w *workerConns) takeIdle(c *Client, generation uint64) *exclusive {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setGenerationLocked(c, generation)
	n := len(w.idle)
	if n == 0 || generation != w.generation {
		return nil
	}
	x := w.idle[n-1]
	w.idle = w.idle[:n-1]
	return x
}

// setGenerationLocked drops the connections to earlier generations.
func (w *workerConns) setGenerationLocked(c *Client, generation uint64) {
	if generation <= w.generation {
		return
	}
	w.generation = generation
	w.dropIdleLocked(c)
	if w.shared != nil {
		w.shared.retire()
		w.shared = nil
	}
}

// keepIdle keeps x for a later call. It returns false if x is outdated or enough are idle.
func (w *workerConns) keepIdle(x *exclusive) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.Generation != w.generation || len(w.idle) >= maxIdle {
		return false
	}
	w.idle = append(w.idle, x)
	return true
}

// dropIdle closes the idle connections if they belong to the given generation.
func (w *workerConns) dropIdle(c *Client, generation uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation == w.generation {
		w.dropIdleLocked(c)
	}
}

func (w *workerConns) dropIdleLocked(c *Client) {
	for _, x := range w.idle {
		c.discardExclusive(x)
	}
	clear(w.idle)
	w.idle = w.idle[:0]
}

// dropShared makes later calls open another shared connection than s.
func (w *workerConns) dropShared(s *shared) {
	w.mu.Lock()
	if w.shared == s {
		w.shared = nil
	}
	w.mu.Unlock()
	s.retire()
}

// findShared returns the shared connection to the given generation. If there is none, opening is
// closed when the call that opens one is done. If opening is nil, too, the caller must open the
// connection and then call sharedOpened.
func (w *workerConns) findShared(c *Client, generation uint64) (s *shared, opening <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setGenerationLocked(c, generation)
	if w.shared != nil && generation == w.generation {
		return w.shared, nil
	}
	if w.opening == nil {
		w.opening = make(chan struct{})
		return nil, nil
	}
	return nil, w.opening
}

// sharedOpened ends what findShared began. It keeps s, unless s is nil or outdated, or a connection
// to the same process is kept already.
func (w *workerConns) sharedOpened(c *Client, s *shared) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.opening)
	w.opening = nil
	if s == nil {
		return
	}
	w.setGenerationLocked(c, s.Generation)
	if w.shared != nil || s.Generation < w.generation {
		s.retire()
		return
	}
	w.shared = s
}

// sharedTo returns the shared connection to the worker of row. If there is none, one of the calls
// that need it opens it, and the others wait.
func (c *Client) sharedTo(b *budget, row sharedstate.Row) (*shared, *Failure, outcome) {
	w := &c.conns[row.Index()]
	for {
		s, opening := w.findShared(c, row.Generation())
		if s != nil {
			return s, nil, final
		}
		if opening == nil {
			s, f, o := c.openShared(b, row)
			w.sharedOpened(c, s)
			return s, f, o
		}
		b.await(opening)
		if err := b.ended(); err != nil {
			return nil, outOfTime(err, sentNothing, nil), final
		}
	}
}

// openShared opens a connection to the worker of row.
func (c *Client) openShared(b *budget, row sharedstate.Row) (*shared, *Failure, outcome) {
	l, f, o := c.dial(b, row)
	if f != nil {
		return nil, f, o
	}
	s, err := newShared(c, l)
	if err != nil || !c.deadlines.add(s) {
		_ = l.conn.Close()
		return nil, outOfTime(ErrClosed, sentNothing, l), final
	}
	return s, nil, final
}
