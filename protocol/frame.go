package protocol

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

const (
	HeaderSize         = 4       // size of the length before a body, in bytes
	MinPackageSize     = 512     // smallest limit for the size of a frame, in bytes
	DefaultPackageSize = 2 << 20 // default limit for the size of a frame, in bytes
)

const (
	bufferSize = 4 << 10   // initial size of a Reader's buffer: a header and a small body fit
	burstSize  = 32 << 10  // size of the buffer once small frames have arrived together
	firstStep  = 256 << 10 // initial memory for a large body
	growth     = 4         // the memory grows to this many times the bytes that have arrived
)

// BeginFrame appends room for the header of a frame. The body follows, then EndFrame.
func BeginFrame(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// EndFrame writes the length into the header of frame, a whole frame that BeginFrame began. If the
// frame is longer than max bytes, the error is an *Error with StatusPackageTooLarge.
func EndFrame(frame []byte, max int) error { return EndFrameOf(frame, len(frame), max) }

// EndFrameOf is like EndFrame for a frame of size bytes that is not all in frame: the caller writes
// the other bytes from elsewhere.
func EndFrameOf(frame []byte, size, max int) error {
	if size > max || uint64(size-HeaderSize) > math.MaxUint32 {
		return tooLarge(uint64(size), max)
	}
	binary.BigEndian.PutUint32(frame, uint32(size-HeaderSize))
	return nil
}

func tooLarge(size uint64, max int) *Error {
	return &Error{Status: StatusPackageTooLarge, Text: fmt.Sprintf("frame of %d bytes, the limit is %d", size, max)}
}

// A Reader splits a stream into frames. It reads small frames through a buffer, several with one
// read if they have arrived. It reads a large body into new memory that grows as bytes arrive. It
// is not safe for concurrent use.
type Reader struct {
	// Partial, if not nil, is called with true when the beginning of a frame has arrived and Next
	// must read more of it, and with false when that frame is whole. In it the caller can set and
	// clear a read deadline. A frame that arrives in one piece causes no call.
	Partial func(begin bool)

	src     io.Reader
	max     int
	partial bool
	largest int   // size of the largest body that large has read
	err     error // the error in the middle of a frame
	buf     []byte
	r, w    int // buf[r:w] has been read and not returned
}

// NewReader returns a Reader of the frames in r. A frame has at most max bytes, header included.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{src: r, max: max, buf: make([]byte, bufferSize)}
}

// Buffered returns the number of bytes in the buffer that Next has not returned.
func (r *Reader) Buffered() int { return r.w - r.r }

// Ready reports whether the whole next frame is in the buffer. If so, Next does not read from the
// stream, and the bodies that Next has returned since its last read stay valid.
func (r *Reader) Ready() bool {
	n := r.Buffered()
	return n >= HeaderSize && uint64(n-HeaderSize) >= uint64(binary.BigEndian.Uint32(r.buf[r.r:]))
}

// Next returns the body of the next frame. If owned is true, the body belongs to the caller.
// Otherwise it points into the Reader's buffer and is valid until the next call of Next.
//
// The error is io.EOF if the stream ends between two frames. It is an *Error with StatusProtocol if
// the body is empty or the stream ends within a frame, and an *Error with StatusPackageTooLarge if
// the header announces a frame over the limit. Other errors are those of the stream. After an error
// within a frame, Next returns the same error again.
func (r *Reader) Next() (body []byte, owned bool, err error) {
	if r.err != nil {
		return nil, false, r.err
	}
	body, owned, err = r.next()
	if err != nil {
		if r.w > r.r {
			r.err = err
		}
		return nil, false, err
	}
	if r.partial {
		r.partial = false
		if r.Partial != nil {
			r.Partial(false)
		}
	}
	return body, owned, nil
}

func (r *Reader) next() (body []byte, owned bool, err error) {
	if err := r.fill(HeaderSize); err != nil {
		return nil, false, err
	}
	n := binary.BigEndian.Uint32(r.buf[r.r:])
	switch whole := HeaderSize + uint64(n); {
	case n == 0:
		return nil, false, &Error{Status: StatusProtocol, Text: "frame with a body of 0 bytes, at least 1 is needed"}
	case r.max < 0 || whole > uint64(r.max):
		return nil, false, tooLarge(whole, r.max)
	case whole > bufferSize:
		body, err = r.large(int(n))
		return body, true, err
	default:
		if err := r.fill(int(whole)); err != nil {
			return nil, false, err
		}
		body = r.buf[r.r+HeaderSize : r.r+int(whole) : r.r+int(whole)]
		r.r += int(whole)
		return body, false, nil
	}
}

// fill reads until n bytes of the frame are in the buffer.
func (r *Reader) fill(n int) error {
	if r.r == r.w {
		r.r, r.w = 0, 0
	}
	if r.r+n > len(r.buf) { // another frame lies before this one
		old := r.buf
		if len(old) < burstSize {
			r.buf = make([]byte, burstSize)
		}
		r.w = copy(r.buf, old[r.r:r.w])
		r.r = 0
	}
	for r.w-r.r < n {
		got, err := r.read(r.buf[r.w:], r.w-r.r)
		r.w += got
		if err != nil && r.w-r.r < n {
			return r.cut(err, r.w-r.r)
		}
	}
	return nil
}

// large reads a body that does not fit into the buffer. It allocates at most firstStep, growth
// times what has arrived, or the size of the largest earlier body. So a header alone costs little
// memory.
func (r *Reader) large(n int) ([]byte, error) {
	body := make([]byte, min(n, max(firstStep, r.largest)))
	buffered := copy(body, r.buf[r.r+HeaderSize:r.w])
	have := buffered
	for have < n {
		if have == len(body) {
			grown := make([]byte, min(n, growth*have))
			copy(grown, body)
			body = grown
		}
		got, err := r.read(body[have:], HeaderSize+have)
		have += got
		if err != nil && have < n {
			return nil, r.cut(err, HeaderSize+have)
		}
	}
	r.r += HeaderSize + buffered
	r.largest = max(r.largest, n)
	return body, nil
}

// read reads once into p; have is how much of the frame has arrived.
func (r *Reader) read(p []byte, have int) (int, error) {
	if have > 0 && !r.partial {
		r.partial = true
		if r.Partial != nil {
			r.Partial(true)
		}
	}
	for range 100 {
		if n, err := r.src.Read(p); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// cut returns the error for a stream that ends with err after have bytes of a frame.
func (r *Reader) cut(err error, have int) error {
	if err != io.EOF || have == 0 {
		return err
	}
	return &Error{Status: StatusProtocol, Text: fmt.Sprintf("stream ended after %d bytes of a frame", have)}
}
