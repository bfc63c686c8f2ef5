package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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

// A Registry finds the handler of a type. It is safe for concurrent use. A nil or zero Registry is
// empty.
type Registry struct {
	mu     sync.RWMutex
	byType map[string]Handler
}

// NewRegistry returns a Registry of the handlers. A nil handler, an empty type and a second handler
// of a type are errors.
func NewRegistry(handlers ...Handler) (*Registry, error) {
	reg := &Registry{byType: map[string]Handler{}}
	for _, h := range handlers {
		if err := checkHandler(h); err != nil {
			return nil, err
		}
		for _, t := range h.Types() {
			if reg.byType[t] != nil {
				return nil, fmt.Errorf("job: type %q has two handlers; Replace puts one in place of another", t)
			}
			reg.byType[t] = h
		}
	}
	return reg, nil
}

// Replace registers h for all its types and replaces the handlers that they had. With an error it
// registers none.
func (r *Registry) Replace(h Handler) error {
	if err := checkHandler(h); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byType == nil {
		r.byType = map[string]Handler{}
	}
	for _, t := range h.Types() {
		r.byType[t] = h
	}
	return nil
}

func checkHandler(h Handler) error {
	if h == nil {
		return errors.New("job: handler is nil")
	}
	if slices.Contains(h.Types(), "") {
		return errors.New("job: a handler's type must not be empty")
	}
	return nil
}

// Has reports whether jobType has a handler.
func (r *Registry) Has(jobType string) bool {
	_, ok := r.Get(jobType)
	return ok
}

// Get returns the handler of jobType.
func (r *Registry) Get(jobType string) (Handler, bool) {
	if r == nil {
		return nil, false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	h, ok := r.byType[jobType]
	return h, ok
}

// Require returns the handler of jobType, or a *DeadError with ReasonUnregistered that names the
// type.
func (r *Registry) Require(jobType string) (Handler, error) {
	if h, ok := r.Get(jobType); ok {
		return h, nil
	}
	return nil, &DeadError{Reason: ReasonUnregistered, Err: fmt.Errorf("job: no handler for type %q", jobType)}
}

// Types returns the registered types in alphabetical order.
func (r *Registry) Types() []string {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.byType))
}

// Len returns the number of types, not of handlers.
func (r *Registry) Len() int { return len(r.Types()) }
