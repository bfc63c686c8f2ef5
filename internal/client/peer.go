package client

import (
	"sync"

	"github.com/taskd-go/task/sharedstate"
)

// maxIdle is how many connections to one worker are kept for later calls.
const maxIdle = 64

// A peer is the worker processes of one index, as this process is connected to them.
type peer struct {
	mu         sync.Mutex
	generation uint64 // of the connections that are kept
	idle       []*own // the last one used is the next
	shared     *shared
	opening    chan struct{} // closed when somebody has opened the shared one, or failed to; nil: nobody does
}

// take returns an idle connection to the given generation, or nil. Those of an earlier one are dropped.
func (p *peer) take(c *Client, generation uint64) *own {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(c, generation)
	n := len(p.idle)
	if n == 0 || generation != p.generation {
		return nil
	}
	o := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return o
}

// advanceLocked drops the connections to processes of an earlier generation.
func (p *peer) advanceLocked(c *Client, generation uint64) {
	if generation <= p.generation {
		return
	}
	p.generation = generation
	p.dropLocked(c)
	if p.shared != nil {
		p.shared.retire()
		p.shared = nil
	}
}

// put keeps o for a later call; false when it is not wanted.
func (p *peer) put(o *own) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Generation != p.generation || len(p.idle) >= maxIdle {
		return false
	}
	p.idle = append(p.idle, o)
	return true
}

// drop closes the idle connections of a generation whose sockets no longer take packages.
func (p *peer) drop(c *Client, generation uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if generation == p.generation {
		p.dropLocked(c)
	}
}

func (p *peer) dropLocked(c *Client) {
	for _, o := range p.idle {
		c.forget(o)
	}
	clear(p.idle)
	p.idle = p.idle[:0]
}

// leave lets the calls that follow open another shared connection than s.
func (p *peer) leave(s *shared) {
	p.mu.Lock()
	if p.shared == s {
		p.shared = nil
	}
	p.mu.Unlock()
	s.retire()
}

// find returns the shared connection to the given generation. When there is
// none, opening says that somebody opens it; nil: the caller is to do so, and to call opened.
func (p *peer) find(c *Client, generation uint64) (s *shared, opening <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(c, generation)
	if p.shared != nil && generation == p.generation {
		return p.shared, nil
	}
	if p.opening == nil {
		p.opening = make(chan struct{})
		return nil, nil
	}
	return nil, p.opening
}

// opened ends what find began. It keeps s, which may be nil, unless its process is
// outdated or, as a newer one than the caller chose, connected already.
func (p *peer) opened(c *Client, s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.opening)
	p.opening = nil
	if s == nil {
		return
	}
	p.advanceLocked(c, s.Generation)
	if p.shared != nil || s.Generation < p.generation {
		s.retire()
		return
	}
	p.shared = s
}

// sharedTo returns the shared connection to the worker of row. When there is none, one
// of the calls that need it opens it, and the others wait for that.
func (c *Client) sharedTo(b *budget, row sharedstate.Row) (*shared, *Failure, verdict) {
	p := &c.peers[row.Index()]
	for {
		s, opening := p.find(c, row.Generation())
		if s != nil {
			return s, nil, settled
		}
		if opening == nil {
			s, f, v := c.openShared(b, row)
			p.opened(c, s)
			return s, f, v
		}
		b.await(opening)
		if err := b.ended(); err != nil {
			return nil, outOfTime(err, nothing, nil), settled
		}
	}
}

// openShared opens a connection to the worker of row.
func (c *Client) openShared(b *budget, row sharedstate.Row) (*shared, *Failure, verdict) {
	l, f, v := c.dial(b, row)
	if f != nil {
		return nil, f, v
	}
	s, err := newShared(c, l)
	if err != nil || !c.sweeper.add(s) {
		_ = l.conn.Close()
		return nil, outOfTime(ErrClosed, nothing, l), settled
	}
	return s, nil, settled
}
