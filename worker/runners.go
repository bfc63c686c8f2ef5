package worker

import "sync"

// maxIdleRunners bounds the goroutines that wait for a call.
const maxIdleRunners = 256

// runners runs calls, none of which waits for another. A call goes into a queue, and one idle
// goroutine is woken for all that are there: before it runs the first it wakes the next
// goroutine, which finds the others gone if they were short. So a burst of short calls costs few
// wake-ups, and one that blocks holds up nobody.
//
// A goroutine that has nothing to run is kept, the last to fall idle is the first to be woken:
// its stack has grown already and is warm. An idle one waits on its channel and costs nothing else.
type runners struct {
	mu     sync.Mutex
	queue  callQueue
	coming bool // a goroutine is on its way to the queue
	idle   []chan struct{}
	closed bool
	wg     sync.WaitGroup
}

// run starts k and does not wait for it.
func (p *runners) run(k *call) {
	p.mu.Lock()
	p.queue.push(k)
	p.unlock()
}

// unlock gives mu back, having seen to it that a goroutine comes for what is queued.
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

// loop also ends when a task ends its goroutine.
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

// A callQueue holds calls in their order.
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
