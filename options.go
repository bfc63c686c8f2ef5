package task

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/taskd-go/task/protocol"
)

// A CallOption changes one call. A later option overrides an earlier one.
type CallOption func(*callOptions)

type callOptions struct {
	timeout    time.Duration
	wait       time.Duration
	cancel     bool
	meta       map[string]string
	soft, hard time.Duration
}

// WithTimeout bounds the whole call: encoding, choosing a worker, connecting, sending and waiting.
// d <= 0: no deadline. The default is Config.PushTimeout for Async and 3 s for Sync.
func WithTimeout(d time.Duration) CallOption {
	return func(o *callOptions) { o.timeout = max(d, 0) }
}

// WithWait lets the call wait for a free slot, at most d and within its timeout. Without it a call
// to a busy pool fails at once with ErrProcessBusy.
func WithWait(d time.Duration) CallOption {
	return func(o *callOptions) { o.wait = max(d, 0) }
}

// WithCancel ends the task's context, with the cause ErrCallerGone, when the caller's deadline,
// context or connection ends. Without it a task that has begun runs on.
func WithCancel() CallOption {
	return func(o *callOptions) { o.cancel = true }
}

// WithMeta sends m, such as trace headers, with the task, which finds it in Info.Meta. m has at
// most 128 pairs, 127 together with WithCancel, and no key that begins with "taskd."; otherwise the
// call fails with ErrIllegalPackage and is not sent.
func WithMeta(m map[string]string) CallOption {
	m = maps.Clone(m)
	return func(o *callOptions) { o.meta = m }
}

// optionsOf applies opts to a call with the given timeout.
func optionsOf(timeout time.Duration, opts []CallOption) callOptions {
	if len(opts) == 0 {
		return callOptions{timeout: timeout} // a pointer to it would cost an allocation
	}
	o := callOptions{timeout: timeout}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// check returns what is wrong with the options, "" if nothing is.
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

// maxMeta returns how many pairs the caller's meta may have.
func (o *callOptions) maxMeta() int {
	if o.cancel {
		return protocol.MaxMeta - 1 // WithCancel travels as a pair
	}
	return protocol.MaxMeta
}

// WithTimeLimit limits the run of this task. After soft its context ends, with the cause
// ErrSoftLimit; after hard its worker is replaced and killed. The smaller of each limit and
// Config's counts; 0 keeps Config's. A call with a negative limit, or with soft >= hard > 0, fails
// with ErrIllegalPackage and is not sent.
func WithTimeLimit(soft, hard time.Duration) CallOption {
	return func(o *callOptions) { o.soft, o.hard = soft, hard }
}
