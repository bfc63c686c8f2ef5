package task

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/taskd-go/task/protocol"
)

// A CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	timeout    time.Duration
	wait       time.Duration
	cancel     bool
	meta       map[string]string
	soft, hard time.Duration
}

// WithTimeout sets the budget of the whole delivery: encoding, choosing,
// connecting, sending and waiting. d <= 0: no deadline. The default is
// Config.PushTimeout for Async and 3 s for Sync.
func WithTimeout(d time.Duration) CallOption {
	return func(o *callOptions) { o.timeout = max(d, 0) }
}

// WithWait lets the call wait up to d, within its budget, for a free slot.
// Without it a busy pool is answered at once with ErrProcessBusy.
func WithWait(d time.Duration) CallOption {
	return func(o *callOptions) { o.wait = max(d, 0) }
}

// WithCancel ends the task's context when the caller's deadline, context or
// connection ends. Without it a task that has begun goes on.
func WithCancel() CallOption {
	return func(o *callOptions) { o.cancel = true }
}

// WithMeta sends m along with the task, as Info.Meta: trace context and the
// like. It has at most 128 pairs, 127 together with WithCancel, and no key that
// begins with "taskd.": a call with more, or with such a key, fails with
// ErrIllegalPackage and is not sent.
func WithMeta(m map[string]string) CallOption {
	m = maps.Clone(m)
	return func(o *callOptions) { o.meta = m }
}

// optionsOf is what opts make of a call with the given timeout.
func optionsOf(timeout time.Duration, opts []CallOption) callOptions {
	if len(opts) == 0 {
		return callOptions{timeout: timeout} // without the allocation that a pointer to it costs
	}
	o := callOptions{timeout: timeout}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// check says what is wrong with the options; "" when nothing is.
func (o *callOptions) check() string {
	if o.soft < 0 || o.hard < 0 {
		return fmt.Sprintf("WithTimeLimit(%v, %v): a limit must not be negative", o.soft, o.hard)
	}
	if o.hard > 0 && o.soft >= o.hard {
		return fmt.Sprintf("WithTimeLimit(%v, %v): the soft limit must be below the hard one", o.soft, o.hard)
	}
	if most := o.maxMeta(); len(o.meta) > most {
		return fmt.Sprintf("WithMeta: %d pairs, at most %d are allowed", len(o.meta), most)
	}
	for key := range o.meta {
		if strings.HasPrefix(key, protocol.MetaReserved) {
			return fmt.Sprintf("WithMeta: the key %q begins with %q, which is reserved", key, protocol.MetaReserved)
		}
	}
	return ""
}

// maxMeta is how many pairs the caller's own meta may have.
func (o *callOptions) maxMeta() int {
	if o.cancel {
		return protocol.MaxMeta - 1 // which travels as one
	}
	return protocol.MaxMeta
}

// WithTimeLimit limits the run of this task: soft ends its context, hard stops
// its worker. The smaller of each and Config's counts; 0 keeps Config's. A call
// whose soft limit is not below its hard one, or with a negative one, fails
// with ErrIllegalPackage and is not sent.
func WithTimeLimit(soft, hard time.Duration) CallOption {
	return func(o *callOptions) { o.soft, o.hard = soft, hard }
}
