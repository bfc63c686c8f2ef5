package protocol

import (
	"io"
	"time"
)

const (
	Version            = 1
	HeaderSize         = 4       // bytes of the length in front of a body
	MinPackageSize     = 512     // smallest limit of a whole frame, in bytes
	DefaultPackageSize = 2 << 20 // default limit of a whole frame, in bytes
	MaxDepth           = 64      // nesting that a body may have
)

// A Status is the reason of a refusal or a failure; 0 is none.
type Status int

const (
	StatusOK               Status = 0
	StatusBusy             Status = -2
	StatusProtocol         Status = -3
	StatusIllegal          Status = -4
	StatusTaskError        Status = -5
	StatusExpired          Status = -6
	StatusSockTimeout      Status = -7
	StatusPackageTooLarge  Status = -8
	StatusResponseTooLarge Status = -9
)

// Message returns the status in words; Error makes a Status an error.
func (s Status) Message() string { panic("stub") }
func (s Status) Error() string   { panic("stub") }

// An Error is a frame, package or response that breaks the format.
type Error struct {
	Status Status
	ID     uint64 // the package's id where it could be read, else 0
	Text   string // names the value and the rule
}

func (e *Error) Error() string { panic("stub") }
func (e *Error) Unwrap() error { return e.Status }

// A Type says what the client waits for.
type Type uint8

const (
	Async Type = 1
	Sync  Type = 2
	Alone Type = 4 // a flag on either: nothing more is sent on this connection before the answer
)

// MetaCancel is the reserved meta key of a call whose task ends with its
// caller's deadline or connection (WithCancel). A worker takes it out of the
// meta that the task sees.
const MetaCancel = "taskd.cancel"

// A Package is one request. Parsed, its byte slices point into the body.
type Package struct {
	Type       Type // without Alone
	Alone      bool
	ID         uint64
	Expire     int64 // nanoseconds of CLOCK_MONOTONIC, 0: none
	Task       []byte
	Payload    []byte // raw msgpack, one value
	Meta       map[string]string
	Soft, Hard time.Duration // limits of this call, 0: none
}

// AppendHead appends everything in front of the payload; the payload (one
// msgpack value) and AppendTail's bytes follow. Type, id and expire have fixed widths, so
// that SetType, SetID can change them later in the finished frame.
func AppendHead(dst []byte, p *Package) []byte { panic("stub") }
func AppendTail(dst []byte, p *Package) []byte { panic("stub") }

// SetID and SetType write into a finished frame made by BeginFrame, AppendHead, ….
func SetID(frame []byte, id uint64) { panic("stub") }
func SetType(frame []byte, t Type)  { panic("stub") } // with the Alone flag as given

// ParsePackage reads a body whole: it walks it once for well-formedness within
// the limits, then reads its shape. The error is an *Error.
func ParsePackage(body []byte) (Package, error) { panic("stub") }

// A Response answers one package; with ID 0 it is a greeting (OK) or a notice (not OK).
type Response struct {
	ID     uint64
	OK     bool
	Status Status
	Data   []byte // raw msgpack, one value; nil: nil
	TaskID uint64
}

// Text returns Data as a string when it is one, else "".
func (r *Response) Text() string { panic("stub") }

func AppendResponse(dst []byte, r *Response) []byte { panic("stub") }

// AppendResponseHead appends everything in front of the data; one msgpack value and
// AppendResponseTail's bytes follow: a result is encoded straight into the frame.
func AppendResponseHead(dst []byte, id uint64, ok bool, s Status) []byte { panic("stub") }
func AppendResponseTail(dst []byte, taskID uint64) []byte                { panic("stub") }
func ParseResponse(body []byte) (Response, error)                        { panic("stub") }

// A Greeting is what a worker writes first on each connection.
type Greeting struct {
	Index          int
	Generation     uint64
	PID            int
	MaxPackageSize int
}

func AppendGreeting(dst []byte, g Greeting) []byte       { panic("stub") } // whole frame
func AppendNotice(dst []byte, lastRead uint64) []byte    { panic("stub") } // whole frame
func ParseGreeting(r *Response) (g Greeting, ok bool)    { panic("stub") }
func ParseNotice(r *Response) (lastRead uint64, ok bool) { panic("stub") }

// BeginFrame appends room for a frame's header; EndFrame writes the length into frame, which BeginFrame
// began at its first byte, and fails with StatusPackageTooLarge when it is longer than max bytes.
func BeginFrame(dst []byte) []byte         { panic("stub") }
func EndFrame(frame []byte, max int) error { panic("stub") }

// A Reader cuts a stream into frames. One buffered read serves the header and a small body;
// a large body is read directly into memory of its own. Not safe for concurrent use.
type Reader struct {
	// Partial, when set, is called with true before a read in the middle of a frame
	// (the caller arms its FrameTimeout) and with false once that frame is whole.
	Partial func(begin bool)
}

// NewReader reads from r frames of at most max bytes, header included.
func NewReader(r io.Reader, max int) *Reader { panic("stub") }

// Next returns the next body. It points into the Reader's buffer and is valid until the next call, unless
// owned says that it has memory of its own. io.EOF: the stream ended between two frames; *Error with
// StatusProtocol: N = 0, or cut short; with StatusPackageTooLarge: found from the header alone.
func (r *Reader) Next() (body []byte, owned bool, err error) { panic("stub") }

// Buffered returns how many bytes wait in the buffer behind the last frame.
func (r *Reader) Buffered() int { panic("stub") }

// Check walks one msgpack value at the head of b within the limits and returns its length.
func Check(b []byte) (n int, err error) { panic("stub") }
