package protocol

import (
	"encoding/binary"
	"time"

	"github.com/taskd-go/task/internal/raw"
)

// Version is the first element of every package and response.
const Version = 1

// A Type says what a client waits for.
type Type uint8

const (
	Async Type = 1 // that the worker accepts the task
	Sync  Type = 2 // the result of the task
	Alone Type = 4 // a flag: the client sends nothing more on this connection before the answer
)

// MetaReserved is the prefix of the meta keys that are reserved for the protocol. No task sees
// them.
const MetaReserved = "taskd."

// MetaCancel is a meta key. The task of a call that has it is cancelled at the deadline of the call
// or when the connection ends. Its value is "1".
const MetaCancel = MetaReserved + "cancel"

// MaxMeta is the largest number of pairs in the meta of a package. The limit is low because a map
// in memory takes many times its bytes on the wire.
const MaxMeta = 128

// A Package is one request. ParsePackage makes its byte slices point into the body.
type Package struct {
	Type       Type              // Async or Sync, without Alone
	Alone      bool              // the flag Alone
	ID         uint64            // greater than every earlier id on its connection, never 0
	Expire     int64             // deadline in nanoseconds of CLOCK_MONOTONIC; 0: none
	Task       []byte            // name of the task
	Payload    []byte            // one msgpack value
	Meta       map[string]string // at most MaxMeta pairs
	Soft, Hard time.Duration     // time limits of this call; 0: none
}

// Offsets of the fields of fixed width in a frame that AppendHead wrote.
const (
	typeOffset = HeaderSize + 2
	idOffset   = HeaderSize + 4
)

// AppendHead appends the elements of p before the payload. The caller then appends the payload, one
// msgpack value, and calls AppendTail with the same p. AppendHead ignores p.Payload. Type, id and
// deadline have a fixed width, so that SetType and SetID can change them in the finished frame.
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

// AppendTail appends the elements of p after the payload. It appends nothing if p has neither meta
// nor limits.
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

// elements returns the length of the array, without trailing nils.
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

// SetID changes the id in a frame that BeginFrame and AppendHead began.
func SetID(frame []byte, id uint64) { binary.BigEndian.PutUint64(frame[idOffset:], id) }

// SetType changes the type, including the flag Alone, in a frame that BeginFrame and AppendHead
// began.
func SetType(frame []byte, t Type) { frame[typeOffset] = byte(t) }

// ParsePackage parses a whole body. The error is an *Error with StatusIllegal, and with the
// package's id if that could be read. ParsePackage allocates only for meta and for an error.
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

// parseOwn parses a package in the form in which AppendHead writes it, without meta and limits. It
// takes half the time of parsePackage. ok is false for any other body.
func parseOwn(body []byte) (p Package, ok bool) {
	const task = idOffset + 8 + 1 + 8 - HeaderSize // offset of the name in the body
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

// meta reads a map of strings, which share one allocation. Of pairs with equal keys the last
// counts.
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
