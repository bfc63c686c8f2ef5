package client

import "sync"

// keepBelow is the size, in bytes, up to which a frame's memory is always kept.
const keepBelow = 64 << 10

// A frame is one package as it goes out, in memory that is used again.
type frame struct{ bytes []byte }

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
