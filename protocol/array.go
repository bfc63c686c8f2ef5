package protocol

import (
	"fmt"

	"github.com/taskd-go/task/internal/raw"
)

// An array reads the elements of a body one after another. Malformed msgpack ends it. An element of
// the wrong kind does not, so that an id after it can still be read.
type array struct {
	body []byte
	at   int // index of the next element
	left int
	id   uint64
	err  *Error // the first error found
}

// openArray returns the elements of body, which must be an array of at least least elements.
func openArray(what string, body []byte, least int) array {
	a := array{body: body}
	head, at := raw.Next(body, 0)
	switch {
	case len(body) == 0:
		a.fail("%s is empty, it must be an array of %d or more elements", what, least)
	case head.Kind != raw.Array:
		a.fail("%s begins with the code 0x%02x, it must be an array of %d or more elements", what, body[0], least)
	case head.Len < least:
		a.fail("%s has %d elements, %d are needed", what, head.Len, least)
	case head.Len > len(body)-at:
		a.fail("%s claims %d elements in %d bytes", what, head.Len, len(body))
	default:
		a.at, a.left = at, head.Len
	}
	return a
}

// next returns the token and the bytes of the next element. The bytes are nil after the last
// element and after a fault.
func (a *array) next() (raw.Token, []byte) {
	if a.left == 0 {
		return raw.Token{Kind: raw.Cut}, nil
	}
	t, end := raw.Next(a.body, a.at)
	switch t.Kind {
	case raw.Cut, raw.Reserved, raw.Array, raw.Map:
		var fault raw.Fault
		if end, fault = raw.Walk(a.body, a.at, MaxDepth-1); fault != raw.Sound {
			a.fail("%s", faultText(fault, a.body, end))
			a.left = 0
			return raw.Token{Kind: raw.Cut}, nil
		}
	}
	v := a.body[a.at:end:end]
	a.at = end
	a.left--
	return t, v
}

func (a *array) fail(format string, args ...any) {
	if a.err == nil {
		a.err = &Error{Text: fmt.Sprintf(format, args...)}
	}
}

// uint, int, bool and text read the next element. name names it in errors.

func (a *array) uint(name string) uint64 {
	t, v := a.next()
	if t.Kind != raw.Uint {
		a.wrong(name, v, "an integer of at least 0")
		return 0
	}
	return t.Bits
}

func (a *array) int(name string) int64 {
	t, v := a.next()
	n, ok := t.Int64()
	if !ok {
		a.wrong(name, v, "an integer of 64 bits with sign")
		return 0
	}
	return n
}

func (a *array) bool(name string) bool {
	t, v := a.next()
	if t.Kind != raw.Bool {
		a.wrong(name, v, "a bool")
		return false
	}
	return t.Bits == 1
}

func (a *array) text(name string) []byte {
	t, v := a.next()
	if t.Kind != raw.Str {
		a.wrong(name, v, "a str")
		return nil
	}
	return v[len(v)-t.Len:]
}

// wrong records that the element called name has the value v, which breaks rule.
func (a *array) wrong(name string, v []byte, rule string) {
	if a.err == nil {
		a.fail("%s is %s, it must be %s", name, describe(v), rule)
	}
}

// end skips the elements that this version does not define, and returns the first error of the
// body.
func (a *array) end(status Status) error {
	for a.left > 0 {
		a.next()
	}
	if a.err == nil && a.at < len(a.body) {
		a.fail("%d bytes follow the value", len(a.body)-a.at)
	}
	if a.err == nil {
		return nil
	}
	a.err.Status, a.err.ID = status, a.id
	return a.err
}

// describe returns the value v for an error.
func describe(v []byte) string {
	switch t, next := raw.Next(v, 0); t.Kind {
	case raw.Uint:
		return fmt.Sprint(t.Bits)
	case raw.Int:
		return fmt.Sprint(int64(t.Bits))
	case raw.Bool:
		return fmt.Sprint(t.Bits == 1)
	case raw.Str:
		return fmt.Sprintf("the str %.40q", v[next-t.Len:next])
	case raw.Array, raw.Map:
		return fmt.Sprintf("of kind %s with %d elements", t.Kind, t.Len)
	default:
		return fmt.Sprintf("of kind %s", t.Kind)
	}
}
