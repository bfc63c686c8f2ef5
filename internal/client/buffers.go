package client

import (
	"net"
	"sync"

	"github.com/taskd-go/task/internal/codec"
)

// keepBelow is the size, in bytes, up to which a frame's memory is always kept.
const keepBelow = 64 << 10

// A frame is one package as it goes out, in memory that is used again.
type frame struct {
	bytes []byte
	lent  codec.Lent // the caller's large memory, which is not copied
}

func (f *frame) size() int { return len(f.bytes) + f.lent.Size() }

// write returns how much the connection has taken.
func (f *frame) write(conn *net.UnixConn) (int, error) {
	if f.lent.Size() == 0 {
		return conn.Write(f.bytes)
	}
	return f.lent.WriteTo(conn, f.bytes)
}

// frames keeps the memory of frames between calls.
type frames struct{ pool sync.Pool }

func (f *frames) get() *frame {
	if b, ok := f.pool.Get().(*frame); ok {
		return b
	}
	return &frame{bytes: make([]byte, 0, 512)}
}

// put takes b back. Large memory is dropped as soon as a small call has used
// it, so that one large call does not pin its memory for ever.
func (f *frames) put(b *frame) {
	b.lent.Reset()
	if cap(b.bytes) > keepBelow && cap(b.bytes) > 4*len(b.bytes) {
		return
	}
	b.bytes = b.bytes[:0]
	f.pool.Put(b)
}

// waiters keeps waiters between calls.
type waiters struct{ pool sync.Pool }

func (p *waiters) get() *waiter {
	if w, ok := p.pool.Get().(*waiter); ok {
		return w
	}
	return &waiter{done: make(chan struct{}, 1)}
}

// put takes w back, of which nobody else may know any more.
func (p *waiters) put(w *waiter) {
	*w = waiter{done: w.done}
	p.pool.Put(w)
}
