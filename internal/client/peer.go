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
	dialing    bool // somebody opens the shared one
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

// find returns the shared connection to the given generation. dial says that
// there is none, and that the caller is to open it and call opened.
func (p *peer) find(c *Client, generation uint64, always bool) (s *shared, dial bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(c, generation)
	if p.shared != nil && generation == p.generation {
		return p.shared, false
	}
	if p.dialing && !always {
		return nil, false
	}
	p.dialing = true
	return nil, true
}

// opened ends what find began. It keeps s, which may be nil, unless there is a better one or the
// process is outdated, and returns the one to use.
func (p *peer) opened(c *Client, s *shared) *shared {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing = false
	if s == nil {
		return nil
	}
	p.advanceLocked(c, s.Generation)
	if p.shared != nil || s.Generation < p.generation {
		s.retire()
	} else {
		p.shared = s
	}
	return p.shared
}

// sharedTo returns the shared connection to the worker of row. It opens it when
// there is none; while another call does so it returns nil, unless always is set.
func (c *Client) sharedTo(b *budget, row sharedstate.Row, always bool) (*shared, *Failure, verdict) {
	p := &c.peers[row.Index()]
	s, dial := p.find(c, row.Generation(), always)
	if !dial {
		return s, nil, settled
	}
	l, f, v := c.dial(b, row)
	if f != nil {
		p.opened(c, nil)
		return nil, f, v
	}
	s, err := newShared(c, l)
	if err != nil || !c.sweeper.add(s) {
		p.opened(c, nil)
		_ = l.conn.Close()
		return nil, outOfTime(ErrClosed, nothing, l), settled
	}
	return p.opened(c, s), nil, settled
}
