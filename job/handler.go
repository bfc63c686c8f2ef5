package job

import (
	"context"
	"slices"
)

// A HandleFunc runs one job. Its context ends at the time limit, with the caller's context, and
// when the lease of the job is lost; then context.Cause is ErrLeaseLost.
type HandleFunc func(ctx context.Context, e Envelope) Result

// A Middleware puts a layer around a HandleFunc. The layer calls next once or not at all, and
// releases what it holds when next returns. In a list the first is the outermost.
type Middleware func(next HandleFunc) HandleFunc

// A Handler runs the jobs of its types. It must be safe for concurrent use.
type Handler interface {
	Types() []string
	Handle(ctx context.Context, e Envelope) Result
}

// Func returns a Handler of one type.
func Func(jobType string, fn HandleFunc) Handler {
	return &funcHandler{types: []string{jobType}, handle: fn}
}

// Typed returns a Handler of one type that decodes the payload into a T and calls fn. A job whose
// payload does not fit is dead at once with ReasonDecode: a second attempt would read the same
// bytes.
func Typed[T any](jobType string, fn func(ctx context.Context, payload T, e Envelope) Result) Handler {
	return Func(jobType, func(ctx context.Context, e Envelope) Result {
		var payload T
		if err := e.Bind(&payload); err != nil {
			return Fail(&DeadError{Reason: ReasonDecode, Err: err})
		}
		return fn(ctx, payload, e)
	})
}

// With returns h inside the layers of mw, the first outermost. It leaves out a nil Middleware.
func With(h Handler, mw ...Middleware) Handler {
	return &funcHandler{types: h.Types(), handle: wrap(h.Handle, mw)}
}

type funcHandler struct {
	types  []string
	handle HandleFunc
}

func (h *funcHandler) Types() []string                               { return slices.Clone(h.types) }
func (h *funcHandler) Handle(ctx context.Context, e Envelope) Result { return h.handle(ctx, e) }

// wrap puts layers around fn. A panic of fn reaches them as a result.
func wrap(fn HandleFunc, mw []Middleware) HandleFunc {
	if len(mw) > 0 {
		fn = guard(fn)
	}
	for _, layer := range slices.Backward(mw) {
		if layer != nil {
			fn = layer(fn)
		}
	}
	return fn
}
