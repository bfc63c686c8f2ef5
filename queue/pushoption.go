package queue

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/taskd-go/task/job"
)

// A PushOption is an option of a push.
type PushOption func(*push)

// A push is a job on its way into the table.
type push struct {
	envelope      job.Envelope
	queue         string
	delay         time.Duration
	priority      int
	key           string
	onTaken       OnTaken
	tries         *int
	backoff       *time.Duration
	timeout       *time.Duration
	encoded       []byte
	uniqueKey     string
	priorAttempts int
}

// Delay makes the job due after d; less than 0 counts as 0. Parts of a millisecond are rounded up.
func Delay(d time.Duration) PushOption { return func(p *push) { p.delay = d } }

// On puts the job into another queue than the default one.
func On(queue string) PushOption { return func(p *push) { p.queue = queue } }

// Priority is 0 (low), 1 (normal, the default), 2 (high) or 3 (urgent). Within a queue a higher one goes first.
func Priority(n int) PushOption { return func(p *push) { p.priority = n } }

// Tries is how often the job runs in all, the first time included; below 1 counts as 1, job.Unlimited is no limit.
func Tries(n int) PushOption { return func(p *push) { p.tries = &n } }

// Backoff is the wait after each failure, in place of the worker's policy; less than 0 counts as 0. A job's own
// Backoff method and a handler's job.RetryAfter go before it.
func Backoff(d time.Duration) PushOption { return func(p *push) { d := max(d, 0); p.backoff = &d } }

// Timeout is the time limit of each run: 0 is the worker's, less than 0 none.
func Timeout(d time.Duration) PushOption { return func(p *push) { p.timeout = &d } }

// OnTaken says what a push does whose unique key is taken by another job that is not finished.
type OnTaken int

const (
	Reject   OnTaken = iota + 1 // a *DuplicateError
	Existing                    // pushes nothing and returns the id of the job that has the key
	Replace                     // takes that job's place while it is unreserved, with a new id; else a *DuplicateError
)

// Unique lets one job of its type have the key at a time: from its push until it is done, cancelled, or dead.
func Unique(key string, then OnTaken) PushOption {
	return func(p *push) { p.key, p.onTaken = key, then }
}

// maxKey is the length in bytes that a name or key may have in every database.
const maxKey = 191

// storableKey reports whether a text fits into a column with an index, in every database.
func storableKey(s string) bool {
	return len(s) <= maxKey && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

func checkQueue(name string) error {
	if name == "" || !storableKey(name) {
		return &ConfigError{"queue", fmt.Sprintf("%q", name), fmt.Sprintf("must be 1 to %d bytes of UTF-8 without NUL", maxKey)}
	}
	return nil
}

// checkQueues is checkQueue where "" is every queue.
func checkQueues(name string) error {
	if name == "" {
		return nil
	}
	return checkQueue(name)
}

func (q *Queue) newPush(e job.Envelope, opts []PushOption) (*push, error) {
	p := &push{envelope: e, queue: q.queue, priority: 1}
	for _, set := range opts {
		if set != nil {
			set(p)
		}
	}
	if err := checkQueue(p.queue); err != nil {
		return nil, err
	}
	if p.priority < 0 || p.priority > maxPriority {
		return nil, &ConfigError{"Priority", p.priority, "must be 0 to 3"}
	}
	if p.onTaken != 0 {
		if p.uniqueKey = e.JobType + ":" + p.key; p.key == "" || !storableKey(p.uniqueKey) {
			return nil, &ConfigError{"Unique", fmt.Sprintf("%q", p.key),
				fmt.Sprintf("must not be empty, and with the job's type be at most %d bytes of UTF-8 without NUL", maxKey-1)}
		}
		if p.onTaken < Reject || p.onTaken > Replace {
			return nil, &ConfigError{"Unique", int(p.onTaken), "must be Reject, Existing or Replace"}
		}
	}
	if p.tries != nil {
		p.envelope.MaxAttempts = min(max(*p.tries, 1), job.Unlimited)
	}
	p.priorAttempts = max(e.Attempt, 1) - 1
	if e.JobType == "" {
		return nil, &job.DecodeError{Reason: job.MissingJobType, Err: fmt.Errorf("jobType must be a non-empty string")}
	}
	if !utf8.ValidString(e.JobType) {
		return nil, &ConfigError{"jobType", fmt.Sprintf("%q", e.JobType), "must be UTF-8"}
	}
	var err error
	p.encoded, err = p.envelope.Encode()
	return p, err
}

// fromJob is the envelope of a Go value, and what the value says about itself as options that come before opts.
func (q *Queue) fromJob(j Job, opts []PushOption) (job.Envelope, []PushOption, error) {
	if j == nil {
		return job.Envelope{}, nil, &ConfigError{"job", nil, "must not be nil"}
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

// delayMS rounds up, so that a job never comes before its time.
func delayMS(d time.Duration) int64 {
	d = max(d, 0)
	if d > math.MaxInt64-time.Millisecond {
		return int64(math.MaxInt64 / time.Millisecond)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
