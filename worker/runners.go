package worker

import "sync"

// maxIdleRunners bounds the number of idle goroutines.
const maxIdleRunners = 256

// runners is a goroutine pool for calls; no call waits for another. A call goes into a queue, and
// one idle goroutine wakes up for all calls in it. Before it runs the first call it wakes the next
// goroutine, which finds the queue empty if the calls were short. So a burst of short calls costs
// few wake-ups, and a call that blocks holds up no other.
//
// A goroutine without a call stays idle on a channel. The one that became idle last is woken first,
// because its stack has grown and is in the cache.
type runners struct {
	mu     sync.Mutex
	queue  callQueue
	coming bool // a goroutine is on its way to the queue
	idle   []chan struct{}
	closed bool
	wg     sync.WaitGroup
}

// run starts k and returns at once.
func (p *runners) run(k *call) {
	p.mu.Lock()
	p.queue.push(k)
	p.unlock()
}

// unlock makes sure that a goroutine comes for the queue, and unlocks mu.
func (p *runners) unlock() {
	if p.coming || p.queue.first == nil {
		p.mu.Unlock()
		return
	}
	p.coming = true
	n := len(p.idle) - 1
	if n < 0 {
		p.mu.Unlock()
		p.wg.Go(p.loop)
		return
	}
	next := p.idle[n]
	p.idle = p.idle[:n]
	p.mu.Unlock()
	next <- struct{}{}
}

// loop runs calls until the goroutine has none. It also ends if a task ends its goroutine.
func (p *runners) loop() {
	wake := make(chan struct{}, 1)
	for {
		p.mu.Lock()
		p.coming = false
		for k := p.queue.pop(); k != nil; k = p.queue.pop() {
			p.unlock()
			k.do()
			p.mu.Lock()
		}
		if p.closed || len(p.idle) == maxIdleRunners {
			p.mu.Unlock()
			return
		}
		p.idle = append(p.idle, wake)
		p.mu.Unlock()
		if _, ok := <-wake; !ok {
			return
		}
	}
}

// close ends the idle goroutines and, as they finish, the busy ones.
func (p *runners) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, wake := range p.idle {
		close(wake)
	}
	p.idle = nil
}

// A callQueue holds calls in the order of their arrival.
type callQueue struct{ first, last *call }

func (q *callQueue) push(k *call) {
	if q.last == nil {
		q.first = k
	} else {
		q.last.behind = k
	}
	q.last = k
}

func (q *callQueue) pop() *call {
	k := q.first
	if k != nil {
		q.first, k.behind = k.behind, nil
		if q.first == nil {
			q.last = nil
		}
	}
	return k
}
