package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// A PushOption changes a push. Stores have options of their own: sqlqueue.In pushes in a
// transaction.
type PushOption = backend.PushOption

// Delay makes the job due after d; less than 0 counts as 0. SQL stores round up to a whole
// millisecond.
func Delay(d time.Duration) PushOption { return func(o *backend.PushOptions) { o.Delay = d } }

// On names the queue of the job, in place of the default one: 1 to 191 bytes of UTF-8 without control
// characters, commas and colons, and without a space at either end.
func On(queue string) PushOption { return func(o *backend.PushOptions) { o.Queue = queue } }

// Priority sets 0 (low), 1 (normal, the default), 2 (high) or 3 (urgent). Within a queue, workers
// take jobs of higher priority first.
func Priority(n int) PushOption { return func(o *backend.PushOptions) { o.Priority = n } }

// Tries sets how often the job may run, including the first time. A number below 1 counts as 1;
// job.Unlimited means no limit.
func Tries(n int) PushOption { return func(o *backend.PushOptions) { o.Tries = &n } }

// Backoff sets the wait after each failure, in place of the worker's policy; less than 0 counts as
// 0. A job's own Backoff method and a handler's job.RetryAfter override it.
func Backoff(d time.Duration) PushOption {
	return func(o *backend.PushOptions) { d := max(d, 0); o.Backoff = &d }
}

// Timeout sets the time limit of each run: 0 means the worker's, less than 0 none.
func Timeout(d time.Duration) PushOption { return func(o *backend.PushOptions) { o.Timeout = d } }

// Taken says what a push does if a live job of the same type has its unique key.
type Taken = backend.Taken

// What a push does if a live job has its unique key.
const (
	TakenReject   = backend.TakenReject   // it fails with a *DuplicateError
	TakenExisting = backend.TakenExisting // it stores nothing and returns the id of that job
	// TakenReplace removes that job and stores the new one, with a new id. If a worker has that
	// job, the push fails with a *DuplicateError.
	TakenReplace = backend.TakenReplace
)

// Unique gives the job a key, which it has from its push until it is done, cancelled or dead. Of
// the live jobs of one type, only one can have a key; then says what the push does if another job
// has it.
func Unique(key string, then Taken) PushOption {
	return func(o *backend.PushOptions) { o.Key, o.OnTaken = key, then }
}

// storableKey reports whether a text fits into a column with an index, in every database.
func storableKey(s string) bool {
	return len(s) <= backend.MaxKey && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

func checkQueue(name string) error {
	if name == "" || !storableKey(name) || strings.ContainsAny(name, ",:") ||
		strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name {
		return &ConfigError{Option: "queue", Value: fmt.Sprintf("%q", name), Rule: "must be " + queueRule}
	}
	return nil
}

// queueRule keeps out the characters that separate names in Queues, and those that lists of queues
// cannot show.
var queueRule = fmt.Sprintf("1 to %d bytes of UTF-8 without control characters, commas and colons, and without a space "+
	"at either end", backend.MaxKey)

// checkQueues is checkQueue, except that "" means every queue.
func checkQueues(name string) error {
	if name == "" {
		return nil
	}
	return checkQueue(name)
}

func (q *Queue) pushOptions(opts []PushOption) backend.PushOptions {
	o := backend.PushOptions{Queue: q.queue, Priority: normalPriority}
	for _, set := range opts {
		if set != nil {
			set(&o)
		}
	}
	return o
}

const normalPriority = 1

// message returns e as the store gets it. It checks the options, and that the store can do what
// they need.
func (q *Queue) message(e job.Envelope, o backend.PushOptions) (m backend.Message, err error) {
	if err := q.check(e, o); err != nil {
		return m, err
	}
	m = backend.Message{
		Queue: o.Queue, Envelope: e, Delay: max(o.Delay, 0), Priority: o.Priority, Attempts: min(max(e.Attempt, 1)-1, job.Unlimited-1),
		Backoff: o.Backoff, Timeout: o.Timeout, OnTaken: o.OnTaken,
	}
	if o.OnTaken != 0 {
		m.UniqueKey = uniqueKey(e, o)
	}
	if o.Tries != nil {
		m.MaxAttempts = min(max(*o.Tries, 1), job.Unlimited)
		m.Envelope.MaxAttempts = m.MaxAttempts
	}
	m.Payload, err = m.Envelope.Encode()
	return m, err
}

func uniqueKey(e job.Envelope, o backend.PushOptions) string { return e.JobType + ":" + o.Key }

func (q *Queue) check(e job.Envelope, o backend.PushOptions) error {
	if err := checkQueue(o.Queue); err != nil {
		return err
	}
	if o.Priority < 0 || o.Priority > backend.MaxPriority {
		return &ConfigError{Option: "Priority", Value: o.Priority, Rule: "must be 0 to 3"}
	}
	if o.OnTaken != 0 {
		if o.Key == "" || !storableKey(uniqueKey(e, o)) {
			return &ConfigError{Option: "Unique", Value: fmt.Sprintf("%q", o.Key),
				Rule: fmt.Sprintf("must not be empty, and with the job's type be at most %d bytes of UTF-8 without NUL",
					backend.MaxKey-1)}
		}
		if o.OnTaken < TakenReject || o.OnTaken > TakenReplace {
			return &ConfigError{Option: "Unique", Value: int(o.OnTaken),
				Rule: "must be TakenReject, TakenExisting or TakenReplace"}
		}
	}
	if e.JobType == "" {
		return &job.DecodeError{Reason: job.MissingJobType, Err: errors.New("jobType must be a non-empty string")}
	}
	if !utf8.ValidString(e.JobType) {
		return &ConfigError{Option: "jobType", Value: fmt.Sprintf("%q", e.JobType), Rule: "must be UTF-8"}
	}
	switch {
	case o.Delay > 0 && !q.can.Delay:
		return q.unsupported("delay")
	case o.Priority != normalPriority && !q.can.Priority:
		return q.unsupported("priorities")
	case o.OnTaken != 0 && !q.can.Unique:
		return q.unsupported("unique keys")
	}
	return nil
}

// fromJob returns the envelope of j, and the options of its own methods followed by opts.
func (q *Queue) fromJob(j Job, opts []PushOption) (job.Envelope, []PushOption, error) {
	if j == nil {
		return job.Envelope{}, nil, &ConfigError{Option: "job", Value: nil, Rule: "must not be nil"}
	}
	e, err := job.New(j.JobType(), j, nil, q.policy)
	if err != nil {
		return e, nil, err
	}
	var own []PushOption
	if t, ok := j.(trier); ok {
		own = append(own, Tries(t.Tries()))
	}
	if t, ok := j.(timer); ok {
		own = append(own, Timeout(t.Timeout()))
	}
	return e, append(own, opts...), nil
}
