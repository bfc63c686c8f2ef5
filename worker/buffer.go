package worker

import "sync"

// smallBuffer is the most that a buffer of the small pool may hold, in bytes.
const smallBuffer = 64 << 10

// A buffer is memory for one frame or payload.
type buffer struct{ b []byte }

// buffers keeps buffers for the next call. Small and large ones lie apart, so that one large
// frame does not end up behind every small one; the garbage collector empties both, so that
// nothing pins a large one for ever.
type buffers struct{ small, large sync.Pool }

// get returns an empty buffer, with room for size bytes if the pool has such a one.
func (p *buffers) get(size int) *buffer {
	pool := &p.small
	if size > smallBuffer {
		pool = &p.large
	}
	b, ok := pool.Get().(*buffer)
	if !ok {
		return &buffer{make([]byte, 0, max(size, 512))}
	}
	b.b = b.b[:0]
	return b
}

// put gives b back; nil is nothing.
func (p *buffers) put(b *buffer) {
	switch {
	case b == nil:
	case cap(b.b) > smallBuffer:
		p.large.Put(b)
	default:
		p.small.Put(b)
	}
}
