package protocol

import (
	"fmt"

	"github.com/taskd-go/task/internal/raw"
)

// An array hands out the elements of a body, each walked once. A fault of the format ends
// it; an element that is merely wrong does not, so that an id behind it can still be found.
type array struct {
	body []byte
	at   int // index of the next element
	left int
	id   uint64
	err  *Error // the first thing found wrong
}

// openArray begins a body that is an array of least or more elements.
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

// next returns the next element: its token and its bytes, nil behind the last one and after a fault.
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

// uint, int, bool and text read the next element; name says what it stands for.

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

// wrong is the failure of an element that is there and is not what name must be.
func (a *array) wrong(name string, v []byte, rule string) {
	if a.err == nil {
		a.fail("%s is %s, it must be %s", name, describe(v), rule)
	}
}

// end passes over the elements that this version does not know, and returns what is wrong with the body.
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

// describe names a value in an error.
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
