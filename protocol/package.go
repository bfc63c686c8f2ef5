package protocol

import (
	"encoding/binary"
	"time"

	"github.com/taskd-go/task/internal/raw"
)

// Version is the number that begins every package and response.
const Version = 1

// A Type says what the client waits for.
type Type uint8

const (
	Async Type = 1 // the worker's acceptance
	Sync  Type = 2 // the task's result
	Alone Type = 4 // a flag on either: nothing more is sent on this connection before the answer
)

// MetaReserved begins the meta keys that belong to the protocol; no task sees them.
const MetaReserved = "taskd."

// MetaCancel is the reserved meta key of a call whose task ends with its caller's
// deadline or connection; its value is "1". A worker takes it out of the meta that the task sees.
const MetaCancel = MetaReserved + "cancel"

// MaxMeta is how many pairs a package's meta may have: a map costs many times
// its bytes on the wire.
const MaxMeta = 128

// A Package is one request. Parsed, its byte slices point into the body.
type Package struct {
	Type       Type // without Alone
	Alone      bool
	ID         uint64 // greater than every id before it on its connection, never 0
	Expire     int64  // nanoseconds of CLOCK_MONOTONIC, 0: none
	Task       []byte
	Payload    []byte // raw msgpack, one value
	Meta       map[string]string
	Soft, Hard time.Duration // limits of this call, 0: none
}

// Where AppendHead's fields of fixed width lie in a frame.
const (
	typeOffset = HeaderSize + 2
	idOffset   = HeaderSize + 4
)

// AppendHead appends everything in front of the payload; the payload (one msgpack
// value) and AppendTail's bytes for the same p follow. Type, id and expire have fixed
// widths, so that SetType and SetID can change them in the finished frame.
func AppendHead(dst []byte, p *Package) []byte {
	t := p.Type
	if p.Alone {
		t |= Alone
	}
	dst = append(dst, 0x90|byte(p.elements()), Version, byte(t), 0xcf)
	dst = binary.BigEndian.AppendUint64(dst, p.ID)
	dst = append(dst, 0xd3)
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Expire))
	return raw.AppendStr(dst, p.Task)
}

// AppendTail appends everything behind the payload: nothing when p has neither meta nor limits.
func AppendTail(dst []byte, p *Package) []byte {
	n := p.elements()
	if n >= 7 {
		dst = appendMeta(dst, p.Meta)
	}
	if n >= 8 {
		dst = raw.AppendArrayHead(dst, 2)
		dst = raw.AppendInt(dst, int64(p.Soft))
		dst = raw.AppendInt(dst, int64(p.Hard))
	}
	return dst
}

// elements returns the array's length: what is nil at its end is left out.
func (p *Package) elements() int {
	switch {
	case p.Soft != 0 || p.Hard != 0:
		return 8
	case len(p.Meta) != 0:
		return 7
	}
	return 6
}

func appendMeta(dst []byte, meta map[string]string) []byte {
	if len(meta) == 0 {
		return append(dst, raw.CodeNil)
	}
	dst = raw.AppendMapHead(dst, len(meta))
	for k, v := range meta {
		dst = raw.AppendStr(dst, k)
		dst = raw.AppendStr(dst, v)
	}
	return dst
}

// SetID writes the id into a finished frame made by BeginFrame, AppendHead and what follows.
func SetID(frame []byte, id uint64) { binary.BigEndian.PutUint64(frame[idOffset:], id) }

// SetType writes the type, with the Alone flag as given, into such a frame.
func SetType(frame []byte, t Type) { frame[typeOffset] = byte(t) }

// ParsePackage reads a body whole, in one walk. The error is an *Error with
// StatusIllegal; it has the package's id where that could be read, though the rest is bad.
// Without meta it allocates nothing.
func ParsePackage(body []byte) (Package, error) {
	if p, ok := parseOwn(body); ok {
		return p, nil
	}
	return parsePackage(body)
}

func parsePackage(body []byte) (Package, error) {
	a := openArray("package", body, 6)
	var p Package
	a.version()
	p.Type, p.Alone = a.packageType()
	if p.ID = a.uint("package id"); p.ID == 0 {
		a.fail("package id is 0, ids begin at 1")
	}
	a.id = p.ID
	p.Expire = a.int("package expire")
	p.Task = a.text("package task")
	_, p.Payload = a.next()
	p.Meta = a.meta()
	p.Soft, p.Hard = a.limits()
	if err := a.end(StatusIllegal); err != nil {
		return Package{}, err
	}
	return p, nil
}

// parseOwn reads a package as AppendHead writes it, without meta and limits, in half the time
// that any other takes; ok is false for those, and for all that is wrong.
func parseOwn(body []byte) (p Package, ok bool) {
	const task = idOffset + 8 + 1 + 8 - HeaderSize // where AppendHead puts the name
	if len(body) < task || body[0] != 0x96 || body[1] != Version || body[3] != 0xcf || body[12] != 0xd3 {
		return Package{}, false
	}
	t := Type(body[2])
	p = Package{
		Type: t &^ Alone, Alone: t&Alone != 0,
		ID:     binary.BigEndian.Uint64(body[4:]),
		Expire: int64(binary.BigEndian.Uint64(body[13:])),
	}
	name, at := raw.Next(body, task)
	if name.Kind != raw.Str || p.ID == 0 || p.Type != Async && p.Type != Sync {
		return Package{}, false
	}
	end, fault := raw.Walk(body, at, MaxDepth-1)
	if fault != raw.Sound || end != len(body) {
		return Package{}, false
	}
	p.Task, p.Payload = body[at-name.Len:at:at], body[at:end:end]
	return p, true
}

func (a *array) version() {
	if v := a.uint("version"); v != Version {
		a.fail("version is %d, this side speaks %d", v, Version)
	}
}

func (a *array) packageType() (t Type, alone bool) {
	n := a.uint("package type")
	alone = n&uint64(Alone) != 0
	n &^= uint64(Alone)
	if n != uint64(Async) && n != uint64(Sync) {
		a.fail("package type is %d, it must be %d or %d, with or without %d", n, Async, Sync, Alone)
	}
	return Type(n), alone
}

// meta reads a map of strings, which share one allocation; of pairs with one key the last counts.
func (a *array) meta() map[string]string {
	head, v := a.next()
	switch {
	case v == nil || head.Kind == raw.Nil:
		return nil
	case head.Kind != raw.Map:
		a.wrong("package meta", v, "a map or nil")
		return nil
	case head.Len > MaxMeta:
		a.fail("package meta has %d pairs, at most %d are allowed", head.Len, MaxMeta)
		return nil
	case head.Len == 0:
		return nil
	}
	_, at := raw.Next(v, 0)
	all := string(v)
	m := make(map[string]string, head.Len)
	for range head.Len {
		key, behindKey := raw.Next(v, at)
		value, behind := raw.Next(v, behindKey)
		switch {
		case key.Kind != raw.Str:
			a.wrong("a key of the package meta", v[at:], "a str")
			return nil
		case value.Kind != raw.Str:
			a.wrong("a value of the package meta", v[behindKey:], "a str")
			return nil
		}
		m[all[behindKey-key.Len:behindKey]] = all[behind-value.Len : behind]
		at = behind
	}
	return m
}

func (a *array) limits() (soft, hard time.Duration) {
	head, v := a.next()
	if v == nil || head.Kind == raw.Nil {
		return 0, 0
	}
	if head.Kind != raw.Array || head.Len != 2 {
		a.wrong("package limits", v, "an array [soft, hard] or nil")
		return 0, 0
	}
	pair := openArray("package limits", v, 2)
	soft, hard = pair.limit("soft limit"), pair.limit("hard limit")
	switch {
	case pair.err != nil:
		a.fail("%s", pair.err.Text)
	case hard > 0 && soft >= hard:
		a.fail("soft limit is %d ns, it must be below the hard limit, %d ns", soft, hard)
	}
	return soft, hard
}

func (a *array) limit(name string) time.Duration {
	n := a.int(name)
	if n < 0 {
		a.fail("%s is %d ns, it must not be negative", name, n)
	}
	return time.Duration(n)
}
