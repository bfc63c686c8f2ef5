package worker

import "sync"

// maxIdleRunners bounds the goroutines that wait for a call.
const maxIdleRunners = 256

// runners runs calls, each on a goroutine of its own. A goroutine that has done its call is
// kept for the next one, the last to fall idle first: its stack has grown already and is warm.
// An idle one waits on its channel and costs nothing else.
type runners struct {
	mu     sync.Mutex
	idle   []chan *call
	closed bool
	wg     sync.WaitGroup
}

// run starts k and does not wait for it.
func (p *runners) run(k *call) {
	p.mu.Lock()
	if n := len(p.idle) - 1; n >= 0 {
		next := p.idle[n]
		p.idle = p.idle[:n]
		p.mu.Unlock()
		next <- k
		return
	}
	p.mu.Unlock()
	p.wg.Go(func() { p.loop(k) })
}

// loop also ends when a task ends its goroutine.
func (p *runners) loop(k *call) {
	next := make(chan *call, 1)
	for k != nil {
		k.do()
		if !p.park(next) {
			return
		}
		k = <-next
	}
}

func (p *runners) park(next chan *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == maxIdleRunners {
		return false
	}
	p.idle = append(p.idle, next)
	return true
}

// close ends the idle goroutines and, as they finish, the busy ones.
func (p *runners) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, next := range p.idle {
		close(next)
	}
	p.idle = nil
}
