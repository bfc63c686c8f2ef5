package protocol

import (
	"encoding/binary"
	"math"

	"github.com/taskd-go/task/internal/raw"
)

// A Response answers one package; with ID 0 it is a greeting (OK) or a notice (not OK).
type Response struct {
	ID     uint64
	OK     bool
	Status Status // 0 when OK, else below 0
	Data   []byte // raw msgpack, one value; nil: nil. Parsed, it points into the body
	TaskID uint64 // 0: it took no slot
}

// Text returns Data as a string when it is one, else "".
func (r *Response) Text() string {
	t, next := raw.Next(r.Data, 0)
	if t.Kind != raw.Str || next != len(r.Data) {
		return ""
	}
	return string(r.Data[next-t.Len:])
}

// AppendResponse appends r as a body.
func AppendResponse(dst []byte, r *Response) []byte {
	dst = AppendResponseHead(dst, r.ID, r.OK, r.Status)
	if len(r.Data) == 0 {
		dst = append(dst, raw.CodeNil)
	} else {
		dst = append(dst, r.Data...)
	}
	return AppendResponseTail(dst, r.TaskID)
}

// AppendResponseHead appends everything in front of the data; one msgpack value and
// AppendResponseTail's bytes follow. So a result is encoded straight into the frame.
func AppendResponseHead(dst []byte, id uint64, ok bool, s Status) []byte {
	dst = append(raw.AppendArrayHead(dst, 6), Version)
	dst = raw.AppendUint(dst, id)
	dst = raw.AppendBool(dst, ok)
	return raw.AppendInt(dst, int64(s))
}

// AppendResponseTail appends what stands behind the data.
func AppendResponseTail(dst []byte, taskID uint64) []byte { return raw.AppendUint(dst, taskID) }

// AppendText appends s as a msgpack str: the message of a refusal.
func AppendText(dst []byte, s string) []byte { return raw.AppendStr(dst, s) }

// ParseResponse reads a body whole, in one walk. The error is an *Error with StatusProtocol, and
// with the id where that could be read. It allocates only for an error.
func ParseResponse(body []byte) (Response, error) {
	if r, ok := parseSuccess(body); ok {
		return r, nil
	}
	return parseResponse(body)
}

func parseResponse(body []byte) (Response, error) {
	a := openArray("response", body, 5)
	var r Response
	a.version()
	r.ID = a.uint("response id")
	a.id = r.ID
	r.OK = a.bool("response ok")
	r.Status = a.status(r.OK)
	_, r.Data = a.next()
	if a.left > 0 {
		r.TaskID = a.uint("response task id")
	}
	if err := a.end(StatusProtocol); err != nil {
		return Response{}, err
	}
	return r, nil
}

// parseSuccess reads a success as AppendResponse writes it for an id of a client of this package,
// in half the time that any other response takes; ok is false for those, and for all that is wrong.
func parseSuccess(body []byte) (r Response, ok bool) {
	const data = 1 + 1 + 9 + 1 + 1 // where AppendResponseHead puts the data
	if len(body) < data || body[0] != 0x96 || body[1] != Version || body[2] != 0xcf || body[11] != raw.CodeTrue || body[12] != 0 {
		return Response{}, false
	}
	end, fault := raw.Walk(body, data, MaxDepth-1)
	if fault != raw.Sound {
		return Response{}, false
	}
	taskID, behind := raw.Next(body, end)
	if taskID.Kind != raw.Uint || behind != len(body) {
		return Response{}, false
	}
	return Response{ID: binary.BigEndian.Uint64(body[3:]), OK: true, Data: body[data:end:end], TaskID: taskID.Bits}, true
}

func (a *array) status(ok bool) Status {
	n := a.int("response status")
	switch {
	case ok && n != 0:
		a.fail("response status is %d, with ok it must be 0", n)
	case !ok && (n >= 0 || n < math.MinInt32):
		a.fail("response status is %d, without ok it must be below 0 and fit 32 bits", n)
	}
	return Status(n)
}

// A Greeting is what a worker writes first on each connection.
type Greeting struct {
	Index          int
	Generation     uint64
	PID            int
	MaxPackageSize int
}

// AppendGreeting appends a whole frame.
func AppendGreeting(dst []byte, g Greeting) []byte {
	start := len(dst)
	dst = AppendResponseHead(BeginFrame(dst), 0, true, StatusOK)
	dst = raw.AppendArrayHead(dst, 4)
	dst = raw.AppendInt(dst, int64(g.Index))
	dst = raw.AppendUint(dst, g.Generation)
	dst = raw.AppendInt(dst, int64(g.PID))
	dst = raw.AppendInt(dst, int64(g.MaxPackageSize))
	return endSmallFrame(AppendResponseTail(dst, 0), start)
}

// AppendNotice appends a whole frame: the worker drains, and lastRead is the last id that it read on this connection.
func AppendNotice(dst []byte, lastRead uint64) []byte {
	start := len(dst)
	dst = AppendResponseHead(BeginFrame(dst), 0, false, StatusBusy)
	dst = raw.AppendUint(dst, lastRead)
	return endSmallFrame(AppendResponseTail(dst, 0), start)
}

// endSmallFrame writes the length of a frame that is far below any limit.
func endSmallFrame(dst []byte, start int) []byte {
	dst[start+3] = byte(len(dst) - start - HeaderSize)
	return dst
}

// ParseGreeting reads a response as a greeting; ok is false when it is none.
func ParseGreeting(r *Response) (g Greeting, ok bool) {
	if r.ID != 0 || !r.OK {
		return Greeting{}, false
	}
	a := openArray("greeting", r.Data, 4)
	index, generation := a.int("index"), a.uint("generation")
	pid, size := a.int("pid"), a.int("size")
	if a.end(StatusProtocol) != nil || index < 0 || pid < 0 || size < 0 {
		return Greeting{}, false
	}
	return Greeting{int(index), generation, int(pid), int(size)}, true
}

// ParseNotice reads a response as a notice; ok is false when it is none.
func ParseNotice(r *Response) (lastRead uint64, ok bool) {
	t, next := raw.Next(r.Data, 0)
	if r.ID != 0 || r.OK || r.Status != StatusBusy || t.Kind != raw.Uint || next != len(r.Data) {
		return 0, false
	}
	return t.Bits, true
}
