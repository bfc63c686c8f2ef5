package protocol

import (
	"encoding/binary"
	"math"

	"github.com/taskd-go/task/internal/raw"
)

// A Response answers one package. With ID 0 it is a greeting (OK), a notice (StatusBusy), or the
// refusal of a package whose id could not be read.
type Response struct {
	ID     uint64
	OK     bool
	Status Status // 0 if OK, else below 0
	Data   []byte // one msgpack value, in ParseResponse's result a part of the body; nil means nil
	TaskID uint64 // 0: the call took no slot
}

// Text returns Data as a string, or "" if Data is not a msgpack str.
func (r *Response) Text() string {
	t, next := raw.Next(r.Data, 0)
	if t.Kind != raw.Str || next != len(r.Data) {
		return ""
	}
	return string(r.Data[next-t.Len:])
}

// AppendResponse appends the body of r.
func AppendResponse(dst []byte, r *Response) []byte {
	dst = AppendResponseHead(dst, r.ID, r.OK, r.Status)
	if len(r.Data) == 0 {
		dst = append(dst, raw.CodeNil)
	} else {
		dst = append(dst, r.Data...)
	}
	return AppendResponseTail(dst, r.TaskID)
}

// AppendResponseHead appends the elements before the data. The caller then appends one msgpack
// value, so that a result is encoded into the frame without a copy, and calls AppendResponseTail.
func AppendResponseHead(dst []byte, id uint64, ok bool, s Status) []byte {
	dst = append(raw.AppendArrayHead(dst, 6), Version)
	dst = raw.AppendUint(dst, id)
	dst = raw.AppendBool(dst, ok)
	return raw.AppendInt(dst, int64(s))
}

// AppendResponseTail appends the element after the data, the task id.
func AppendResponseTail(dst []byte, taskID uint64) []byte { return raw.AppendUint(dst, taskID) }

// AppendText appends s as a msgpack str, the type of the message in a refusal.
func AppendText(dst []byte, s string) []byte { return raw.AppendStr(dst, s) }

// ParseResponse parses a whole body. The error is an *Error with StatusProtocol, and with the id if
// that could be read. ParseResponse allocates only for an error.
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

// parseSuccess parses a success in the form in which AppendResponse writes it for ids of nine
// bytes, as the Go client uses them. It takes half the time of parseResponse. ok is false for any
// other body.
func parseSuccess(body []byte) (r Response, ok bool) {
	const data = 1 + 1 + 9 + 1 + 1 // where AppendResponseHead puts the data
	if len(body) < data || body[0] != 0x96 || body[1] != Version || body[2] != 0xcf ||
		body[11] != raw.CodeTrue || body[12] != 0 {
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

// A Greeting is the first thing that a worker writes on a connection.
type Greeting struct {
	Index          int    // number of the worker in its pool, from 0
	Generation     uint64 // number of the process; a successor has a higher one
	PID            int
	MaxPackageSize int // limit for the size of a frame, in bytes
}

// AppendGreeting appends the frame of g.
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

// AppendNotice appends the frame of a notice: the worker drains, and lastRead is the id of the last
// package that it read whole on this connection.
func AppendNotice(dst []byte, lastRead uint64) []byte {
	start := len(dst)
	dst = AppendResponseHead(BeginFrame(dst), 0, false, StatusBusy)
	dst = raw.AppendUint(dst, lastRead)
	return endSmallFrame(AppendResponseTail(dst, 0), start)
}

// endSmallFrame writes the length of a frame of fewer than 256 bytes.
func endSmallFrame(dst []byte, start int) []byte {
	dst[start+3] = byte(len(dst) - start - HeaderSize)
	return dst
}

// ParseGreeting returns the greeting in r; ok is false if r is not a greeting.
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

// ParseNotice returns the id in a notice; ok is false if r is not a notice.
func ParseNotice(r *Response) (lastRead uint64, ok bool) {
	t, next := raw.Next(r.Data, 0)
	if r.ID != 0 || r.OK || r.Status != StatusBusy || t.Kind != raw.Uint || next != len(r.Data) {
		return 0, false
	}
	return t.Bits, true
}
