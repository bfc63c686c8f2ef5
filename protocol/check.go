package protocol

import (
	"fmt"

	"github.com/taskd-go/task/internal/raw"
)

// MaxDepth is the number of levels, 64, to which arrays and maps may nest in a body.
const MaxDepth = raw.MaxDepth

// Check returns the length of the msgpack value at the beginning of b, in bytes. It fails with an
// *Error with StatusIllegal if the value is cut short, claims more elements than bytes are left,
// nests deeper than MaxDepth, or contains the reserved code 0xc1. So a msgpack library can decode a
// value that passes without large allocations or deep recursion. ParsePackage and ParseResponse
// include the check. Check allocates only for an error.
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
