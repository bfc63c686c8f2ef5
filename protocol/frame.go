package protocol

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

const (
	HeaderSize         = 4       // bytes of the length in front of a body
	MinPackageSize     = 512     // smallest limit of a whole frame, in bytes
	DefaultPackageSize = 2 << 20 // default limit of a whole frame, in bytes
)

const (
	bufferSize = 4 << 10   // one read takes a header and a small body
	crowdSize  = 32 << 10  // or many, once frames have followed each other closely
	firstStep  = 256 << 10 // memory for a large body of which little has arrived
	growth     = 4         // further memory, times what has arrived
)

// BeginFrame appends room for a frame's header.
func BeginFrame(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// EndFrame writes the length into frame, which BeginFrame began at its first
// byte. It fails with an *Error of StatusPackageTooLarge when the whole frame is longer than max bytes.
func EndFrame(frame []byte, max int) error { return EndFrameOf(frame, len(frame), max) }

// EndFrameOf is EndFrame for a frame that has size bytes in all, of which some lie elsewhere.
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

// A Reader cuts a stream into frames. One buffered read serves the header and a
// small body; a large body is read directly into memory of its own, which
// grows with what has arrived. It is not safe for concurrent use.
type Reader struct {
	// Partial, when set, is called with true before the first read in the middle
	// of a frame (the caller arms its FrameTimeout) and with false once that
	// frame is whole. A frame that comes in one piece calls it not at all.
	Partial func(begin bool)

	src     io.Reader
	max     int
	partial bool
	largest int   // body that came whole through large
	err     error // ended the stream in the middle of a frame
	buf     []byte
	r, w    int // what has been read and not handed out is buf[r:w]
}

// NewReader reads from r frames of at most max bytes, header included.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{src: r, max: max, buf: make([]byte, bufferSize)}
}

// Buffered returns how many bytes wait in the buffer behind the last frame.
func (r *Reader) Buffered() int { return r.w - r.r }

// Ready says whether the next frame is whole in the buffer. Next then reads nothing, and the
// bodies that it returned since the last read stay valid.
func (r *Reader) Ready() bool {
	n := r.Buffered()
	return n >= HeaderSize && uint64(n-HeaderSize) >= uint64(binary.BigEndian.Uint32(r.buf[r.r:]))
}

// Next returns the next body. It points into the Reader's buffer and is valid
// until the next call, unless owned says that it has memory of its own.
//
// The error is io.EOF when the stream ended between two frames, an *Error with
// StatusProtocol when N is 0 or the frame is cut short, an *Error with
// StatusPackageTooLarge, found from the header alone, or the stream's own. After
// an error in the middle of a frame Next returns that error again.
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
	if r.r+n > len(r.buf) { // behind another frame
		old := r.buf
		if len(old) < crowdSize {
			r.buf = make([]byte, crowdSize)
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

// large reads a body that does not fit the buffer. The memory is never more
// than growth times what has arrived, or firstStep, or the largest body before
// it: a header alone costs little.
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

// cut names a stream's end in the middle of a frame.
func (r *Reader) cut(err error, have int) error {
	if err != io.EOF || have == 0 {
		return err
	}
	return &Error{Status: StatusProtocol, Text: fmt.Sprintf("stream ended after %d bytes of a frame", have)}
}
