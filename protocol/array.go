package protocol

import "fmt"

// An array hands out the elements of a body, each walked once. A fault of the format keeps
// the elements behind it from being read; a wrong element does not, so that an id can still be found.
type array struct {
	body []byte
	at   int // index of the next element
	left int
	id   uint64
	err  *Error // the first thing found wrong
}

// openArray begins a body that is an array of at least least elements.
func openArray(what string, body []byte, least int) array {
	a := array{body: body}
	n, head, ok := arrayHead(body)
	switch {
	case len(body) == 0:
		a.fail("%s is empty, an array of at least %d elements is needed", what, least)
	case !ok:
		a.fail("%s begins with msgpack code 0x%02x, an array of at least %d elements is needed", what, body[0], least)
	case n < least:
		a.fail("%s has %d elements, at least %d are needed", what, n, least)
	case n > len(body)-head:
		a.fail("%s claims %d elements in %d bytes", what, n, len(body))
	default:
		a.at, a.left = head, n
	}
	return a
}

// next returns the next element, nil behind the last one and after a fault.
func (a *array) next() []byte {
	if a.left == 0 {
		return nil
	}
	end, fault := walk(a.body, a.at, MaxDepth-1)
	if fault != sound {
		a.fail("%s", fault.text(a.body, end))
		a.left = 0
		return nil
	}
	v := a.body[a.at:end:end]
	a.at = end
	a.left--
	return v
}

func (a *array) fail(format string, args ...any) {
	if a.err == nil {
		a.err = &Error{Text: fmt.Sprintf(format, args...)}
	}
}

// uint, int, bool and text read the next element as what name stands for.

func (a *array) uint(name string) uint64 {
	v := a.next()
	if v == nil {
		return 0
	}
	n, ok := readUint(v)
	if !ok {
		a.wrong(name, v, "an integer of at least 0")
		return 0
	}
	return n
}

func (a *array) int(name string) int64 {
	v := a.next()
	if v == nil {
		return 0
	}
	n, ok := readInt(v)
	if !ok {
		a.wrong(name, v, "an integer of 64 bits with sign")
		return 0
	}
	return n
}

func (a *array) bool(name string) bool {
	v := a.next()
	if v != nil && v[0] != codeFalse && v[0] != codeTrue {
		a.wrong(name, v, "a bool")
	}
	return v != nil && v[0] == codeTrue
}

func (a *array) text(name string) []byte {
	v := a.next()
	if v == nil {
		return nil
	}
	s, ok := readString(v)
	if !ok {
		a.wrong(name, v, "a str")
	}
	return s
}

func (a *array) wrong(name string, v []byte, rule string) {
	a.fail("%s is %s, it must be %s", name, describe(v), rule)
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
	if bits, negative, ok := number(v); ok {
		if negative {
			return fmt.Sprint(int64(bits))
		}
		return fmt.Sprint(bits)
	}
	if s, ok := readString(v); ok {
		return fmt.Sprintf("the str %.40q", s)
	}
	switch v[0] {
	case codeNil:
		return "nil"
	case codeFalse:
		return "false"
	case codeTrue:
		return "true"
	}
	return fmt.Sprintf("of msgpack code 0x%02x", v[0])
}
