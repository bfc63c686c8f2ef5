package task

import "github.com/taskd-go/task/internal/codec"

// A Result is what a task returned. It is safe for concurrent use.
type Result struct{ raw []byte }

// Decode reads the result into v, a non-nil pointer. A number that does not
// fit into its place, and a value of another kind, are errors that name the
// value and the place; nothing is converted silently. A []byte of 16 KiB or
// more is not copied: it is the Result's own memory.
func (r Result) Decode(v any) error { return codec.Decode(r.bytes(), v) }

// Value returns the result as nil, bool, int64 (uint64 above it), float64,
// string, []byte, time.Time, []any, or map[string]any (map[any]any when a key
// is no string).
func (r Result) Value() (any, error) { return codec.Value(r.bytes()) }

var msgpackNil = []byte{0xc0}

func (r Result) bytes() []byte {
	if len(r.raw) == 0 {
		return msgpackNil
	}
	return r.raw
}

// As decodes the result of a Sync into a T:
//
//	s, err := task.As[string](pool.Sync(ctx, Hello{Name: "you"}))
func As[T any](r Result, err error) (T, error) {
	var v T
	if err != nil {
		return v, err
	}
	err = r.Decode(&v)
	return v, err
}

// An Outcome is one call's part of SyncMany or AsyncMany: its result, or its
// acceptance, or its *Error.
type Outcome struct {
	TaskID uint64 // 0: it took no slot, or that is not known
	Result Result
	Err    error
}
