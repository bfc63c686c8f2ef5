package worker

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	answerTimeout = 10 * time.Second // bounds a write to a full socket
	maxQueued     = 1 << 20          // bytes of waiting answers above which a connection takes no new package
	largeFrame    = 16 << 10         // bytes from which a frame is written by itself, without a copy
	sendBuffer    = 1 << 20          // SO_SNDBUF of a connection that carries large frames
)

// A writer writes answers to a connection. A goroutine that finds no other one writing writes, also
// for those that add answers meanwhile, so that answers of several tasks share a write. It is safe
// for concurrent use.
type writer struct {
	nc      *net.UnixConn
	raw     syscall.RawConn
	buffers *buffers
	timeout time.Duration

	queued atomic.Int64 // bytes not written yet
	mu     sync.Mutex
	moved  sync.Cond // signalled at the end of a turn
	queue  []*buffer
	spare  []*buffer // the memory of the queue of the turn before
	busy   bool      // a goroutine writes
	failed bool      // the connection is lost; answers are dropped

	// The goroutine that writes owns the rest.
	out      []byte // small frames of one turn
	enlarged bool
	attempt  func(fd uintptr) bool // made once, because a closure for each write would be an allocation
	pending  []byte
	wrote    int
	err      error
}

func (w *writer) init(nc *net.UnixConn, buffers *buffers, timeout time.Duration) error {
	w.nc, w.buffers, w.timeout = nc, buffers, timeout
	w.moved.L = &w.mu
	w.attempt = func(fd uintptr) bool {
		w.err = syscall.EINTR
		for w.err == syscall.EINTR {
			w.wrote, w.err = syscall.Write(int(fd), w.pending)
		}
		return true
	}
	var err error
	w.raw, err = nc.SyscallConn()
	return err
}

// send queues the frame b, which later goes back to its pool. If no other goroutine writes, send
// writes until the queue is empty. yield says that other goroutines are about to send; send then
// yields to them once.
func (w *writer) send(b *buffer, yield bool) {
	w.mu.Lock()
	if w.failed {
		w.mu.Unlock()
		w.buffers.put(b)
		return
	}
	w.queue = append(w.queue, b)
	w.queued.Add(int64(len(b.b)))
	if w.busy {
		w.mu.Unlock()
		return
	}
	w.busy = true
	w.mu.Unlock()
	if yield {
		runtime.Gosched()
	}
	for w.turn() {
	}
}

// room waits until the queue is short enough for another package or the connection is lost.
func (w *writer) room() {
	if w.queued.Load() <= maxQueued {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.queued.Load() > maxQueued && !w.failed {
		w.moved.Wait()
	}
}

// turn takes the queue and writes it. It returns false if the queue was empty; then no goroutine
// writes.
func (w *writer) turn() bool {
	w.mu.Lock()
	batch := w.queue
	if len(batch) == 0 {
		w.busy = false
		w.mu.Unlock()
		return false
	}
	w.queue, w.spare = w.spare[:0], nil
	failed := w.failed
	w.mu.Unlock()

	if !failed && w.batch(batch) != nil {
		failed = true
		// This ends the reader too, because a package that cannot be answered must not run.
		_ = w.nc.Close()
	}
	size := 0
	for i, b := range batch {
		size += len(b.b)
		w.buffers.put(b)
		batch[i] = nil
	}
	w.spare = batch
	w.mu.Lock()
	w.failed = failed
	w.queued.Add(int64(-size))
	w.moved.Broadcast()
	w.mu.Unlock()
	return true
}

// batch writes frames in order, the small ones together.
func (w *writer) batch(frames []*buffer) error {
	if len(frames) == 1 {
		return w.write(frames[0].b)
	}
	w.out = w.out[:0]
	for _, f := range frames {
		if len(f.b) < largeFrame && len(w.out)+len(f.b) <= smallBuffer {
			w.out = append(w.out, f.b...)
			continue
		}
		if err := w.write(w.out); err != nil {
			return err
		}
		w.out = w.out[:0]
		if len(f.b) < largeFrame {
			w.out = append(w.out, f.b...)
		} else if err := w.write(f.b); err != nil {
			return err
		}
	}
	return w.write(w.out)
}

// write tries once without a deadline. Setting a deadline pays only for a full socket.
func (w *writer) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if len(p) >= largeFrame && !w.enlarged {
		w.enlarged = true
		// A smaller buffer is only slower.
		_ = w.nc.SetWriteBuffer(sendBuffer)
	}
	w.pending = p
	err := w.raw.Write(w.attempt)
	w.pending = nil
	switch {
	case err != nil:
		return err
	case w.err == nil && w.wrote == len(p):
		return nil
	case w.err != nil && w.err != syscall.EAGAIN:
		return w.err
	}
	if err := w.nc.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return err
	}
	if _, err := w.nc.Write(p[max(w.wrote, 0):]); err != nil {
		return err
	}
	return w.nc.SetWriteDeadline(time.Time{})
}
