package client

import (
	"net"
	"sync"

	"github.com/taskd-go/task/internal/codec"
)

// keepBelow is the capacity in bytes up to which a buffer is always kept.
const keepBelow = 64 << 10

// A frame is one package to be written, in reused memory.
type frame struct {
	bytes []byte
	lent  codec.Lent // large memory of the caller that is written without a copy
}

func (f *frame) size() int { return len(f.bytes) + f.lent.Size() }

// write returns how many bytes the connection took.
func (f *frame) write(conn *net.UnixConn) (int, error) {
	if f.lent.Size() == 0 {
		return conn.Write(f.bytes)
	}
	return f.lent.WriteTo(conn, f.bytes)
}

// frames reuses the memory of frames.
type frames struct{ pool sync.Pool }

func (f *frames) get() *frame {
	if b, ok := f.pool.Get().(*frame); ok {
		return b
	}
	return &frame{bytes: make([]byte, 0, 512)}
}

// put takes b back. It drops large memory after the first small call that used it, so that one
// large call does not pin its memory.
func (f *frames) put(b *frame) {
	b.lent.Reset()
	if cap(b.bytes) > keepBelow && cap(b.bytes) > 4*len(b.bytes) {
		return
	}
	b.bytes = b.bytes[:0]
	f.pool.Put(b)
}

// waiters reuses waiters.
type waiters struct{ pool sync.Pool }

func (p *waiters) get() *waiter {
	if w, ok := p.pool.Get().(*waiter); ok {
		return w
	}
	return &waiter{done: make(chan struct{}, 1)}
}

// put takes w back. Nothing else may refer to w.
func (p *waiters) put(w *waiter) {
	*w = waiter{done: w.done}
	p.pool.Put(w)
}
