package raw

// MaxDepth is how deep arrays and maps may nest.
const MaxDepth = 64

// A Fault is the reason why Walk rejects a value.
type Fault uint8

// The faults of a value.
const (
	Sound    Fault = iota
	CutShort       // the bytes end within the value
	TooMany        // the value claims more elements than bytes are left
	TooDeep        // the value nests deeper than the limit
	Unknown        // the value contains the reserved code
)

// String returns the fault as a predicate: "is cut short".
func (f Fault) String() string {
	switch f {
	case Sound:
		return "is sound"
	case CutShort:
		return "is cut short"
	case TooMany:
		return "claims more elements than bytes are left"
	case TooDeep:
		return "nests deeper than the limit"
	}
	return "is reserved"
}

// Walk returns the index after the value at b[i:], or the index of the fault in it. Arrays and maps
// may nest depth levels deep; depth is at most MaxDepth.
func Walk(b []byte, i, depth int) (int, Fault) {
	t, next := Next(b, i)
	switch t.Kind {
	case Cut:
		return i, CutShort
	case Reserved:
		return i, Unknown
	case Array, Map:
		return walkInside(b, i, depth)
	}
	return next, Sound
}

// walkInside is Walk for an array or map.
//
// pending counts the values to come on all levels. Each takes at least one byte, so an array or map
// that claims more than the bytes that are left is rejected at its header.
func walkInside(b []byte, i, depth int) (int, Fault) {
	var open [MaxDepth]int // values to come on each outer level
	level, here, pending := 0, 1, 1
	for {
		for here == 0 {
			if level == 0 {
				return i, Sound
			}
			level--
			here = open[level]
		}
		here--
		pending--
		t, next := Next(b, i)
		children := t.Len
		switch t.Kind {
		case Cut:
			return i, CutShort
		case Reserved:
			return i, Unknown
		case Map:
			children *= 2
		case Array:
		default:
			i = next
			continue
		}
		if pending += children; pending > len(b)-next {
			return i, TooMany
		}
		if level == depth {
			return i, TooDeep
		}
		open[level] = here
		level++
		i, here = next, children
	}
}
