package worker

import "sync"

// smallBuffer is the largest capacity of a buffer in the small pool, in bytes.
const smallBuffer = 64 << 10

// A buffer is memory for one frame or payload.
type buffer struct{ b []byte }

// buffers keeps buffers for the next call. Small and large ones have pools of their own, so that
// small frames do not occupy large buffers. The garbage collector empties both pools.
type buffers struct{ small, large sync.Pool }

// get returns an empty buffer, one with a capacity of size bytes if the pool has it.
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

// put returns b to its pool. For nil it does nothing.
func (p *buffers) put(b *buffer) {
	switch {
	case b == nil:
	case cap(b.b) > smallBuffer:
		p.large.Put(b)
	default:
		p.small.Put(b)
	}
}
