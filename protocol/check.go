package protocol

import (
	"fmt"

	"github.com/taskd-go/task/internal/raw"
)

// MaxDepth is how deep arrays and maps of a body may lie in each other.
const MaxDepth = raw.MaxDepth

// Check walks one msgpack value at the head of b and returns its length. It
// fails with an *Error of StatusIllegal on a value that is cut short, that
// claims more elements than bytes are left, that nests deeper than MaxDepth, or
// that holds the reserved code 0xc1. It allocates only for an error.
func Check(b []byte) (n int, err error) {
	n, fault := raw.Walk(b, 0, MaxDepth)
	if fault != raw.Sound {
		return 0, &Error{Status: StatusIllegal, Text: faultText(fault, b, n)}
	}
	return n, nil
}

func faultText(f raw.Fault, b []byte, at int) string {
	t, _ := raw.Next(b, at)
	return fmt.Sprintf("msgpack %s at byte %d of %d %s", t.Kind, at, len(b), f)
}
