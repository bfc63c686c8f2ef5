package task

import "github.com/taskd-go/task/internal/codec"

// A Result is what a task returned. It is safe for concurrent use.
type Result struct{ raw []byte }

// Decode decodes the result into v, a non-nil pointer. Decode converts nothing silently: if a
// number does not fit or a value has another kind, the error names the value and its place. A
// []byte of 16 KiB or more is not copied: it is the Result's own memory.
func (r Result) Decode(v any) error { return codec.Decode(r.bytes(), v) }

// Value returns the result as nil, bool, int64 (uint64 above it), float64, string, []byte,
// time.Time, []any, or map[string]any (map[any]any if a key is not a string).
func (r Result) Value() (any, error) { return codec.Value(r.bytes()) }

var msgpackNil = []byte{0xc0}

func (r Result) bytes() []byte {
	if len(r.raw) == 0 {
		return msgpackNil
	}
	return r.raw
}

// As decodes the result of a Sync into a T, or returns err if it is not nil:
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

// An Outcome is the outcome of one call of SyncMany or AsyncMany.
type Outcome struct {
	TaskID uint64 // 0: the call took no slot, or that is unknown
	Result Result // of SyncMany, if Err is nil
	Err    error  // nil or an *Error
}
