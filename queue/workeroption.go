package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/taskd-go/task/job"
)

// A WorkerOption is an option of NewWorker.
type WorkerOption func(*workerOptions)

type workerOptions struct {
	concurrency int
	queues      []weighted
	lease       time.Duration
	renew       time.Duration
	poll        time.Duration
	grace       time.Duration
	query       time.Duration
	unknown     Unknown
	runner      *job.Runner
	hooks       *job.Registry
	wakers      []Waker
	err         error
}

// Concurrency is how many jobs run at once, default 10.
func Concurrency(n int) WorkerOption { return func(o *workerOptions) { o.concurrency = n } }

// Queues says which queues the worker takes jobs from: "a,b" takes from b only when a has none due, "a:3,b:1" looks
// at a first three times out of four. Without it: the Queue's default one.
func Queues(spec string) WorkerOption {
	return func(o *workerOptions) {
		queues, err := parseQueues(spec)
		if o.queues = queues; err != nil {
			o.err = err
		}
	}
}

// CheckQueues says what the option Queues would refuse.
func CheckQueues(spec string) error {
	_, err := parseQueues(spec)
	return err
}

// Lease is how long a job stays reserved when its worker is not heard of, default 30 s. It is renewed while the job
// runs, which may take longer.
func Lease(d time.Duration) WorkerOption { return func(o *workerOptions) { o.lease = d } }

// RenewEvery is the time between renewals, default a third of the lease. It must be shorter than the lease.
func RenewEvery(d time.Duration) WorkerOption { return func(o *workerOptions) { o.renew = d } }

// Poll is the longest time between two looks for jobs when nothing wakes the worker, default 250 ms; it is
// varied by a fifth.
func Poll(d time.Duration) WorkerOption { return func(o *workerOptions) { o.poll = d } }

// Grace is how long running jobs may take to finish after the end of Work's context, default 30 s. After it their
// contexts end, and they have half a second more to return; what they were interrupted in costs no attempt.
func Grace(d time.Duration) WorkerOption { return func(o *workerOptions) { o.grace = d } }

// QueryTimeout bounds each call of the database, default 10 s.
func QueryTimeout(d time.Duration) WorkerOption { return func(o *workerOptions) { o.query = d } }

// An Unknown says what a worker does with a job of a type that it has no handler for.
type Unknown int

const (
	Dead Unknown = iota // it is a dead letter with the reason "unregistered"
	Park                // it is given back without an attempt and due again after the backoff
)

// OnUnknown is Dead by default. Park is for programs that share a queue.
func OnUnknown(u Unknown) WorkerOption { return func(o *workerOptions) { o.unknown = u } }

// RunWith is the Runner that decides about each delivery: its policy, time limit, layers, log and events. Without it
// the default policy's delays, whose limit is each job's own, and 120 s.
func RunWith(r *job.Runner) WorkerOption { return func(o *workerOptions) { o.runner = r } }

// Hooks is where the worker finds the Failed and Middleware methods of jobs when its own handlers only carry them
// elsewhere, as those of pooljob do: the registry that was given to pooljob.Register.
func Hooks(reg *job.Registry) WorkerOption { return func(o *workerOptions) { o.hooks = reg } }

// A Waker tells a worker that a queue may have jobs. Wait calls wake, "" for any queue, until ctx ends or it
// cannot go on; the worker then calls it again after a while.
type Waker interface {
	Wait(ctx context.Context, wake func(queue string)) error
}

// WakeBy adds a Waker.
func WakeBy(w Waker) WorkerOption { return func(o *workerOptions) { o.wakers = append(o.wakers, w) } }

// A weighted queue; a weight of 0 means that the order is strict.
type weighted struct {
	name   string
	weight int
}

func parseQueues(spec string) (queues []weighted, err error) {
	anyWeight := false
	seen := map[string]bool{}
	for _, part := range strings.Split(spec, ",") {
		w := weighted{name: strings.TrimSpace(part)}
		if name, weight, found := strings.Cut(w.name, ":"); found {
			n, err := strconv.Atoi(strings.TrimSpace(weight))
			if err != nil || n < 1 || n > math.MaxInt16 {
				return nil, &ConfigError{"Queues", fmt.Sprintf("%q", spec), "a weight must be a whole number from 1 to 32767"}
			}
			w.name, w.weight, anyWeight = strings.TrimSpace(name), n, true
		}
		if checkQueue(w.name) != nil || seen[w.name] {
			return nil, &ConfigError{"Queues", fmt.Sprintf("%q", spec),
				fmt.Sprintf("must be different names of 1 to %d bytes of UTF-8 with commas between", maxKey)}
		}
		seen[w.name] = true
		queues = append(queues, w)
	}
	if anyWeight {
		for i := range queues {
			queues[i].weight = max(queues[i].weight, 1)
		}
	}
	return queues, nil
}

// draw is the order in which to look at queues this time, without the paused ones.
func draw(queues []weighted, paused func(string) bool) (names []string) {
	var left []weighted
	total := 0
	for _, w := range queues {
		if !paused(w.name) {
			left, total = append(left, w), total+w.weight
		}
	}
	for len(left) > 0 {
		i := 0
		if total > 0 {
			for n := mrand.IntN(total); n >= left[i].weight; i++ {
				n -= left[i].weight
			}
		}
		names, total = append(names, left[i].name), total-left[i].weight
		left = append(left[:i:i], left[i+1:]...)
	}
	return names
}

func (o *workerOptions) check() error {
	switch {
	case o.err != nil:
		return o.err
	case o.concurrency < 1:
		return &ConfigError{"Concurrency", o.concurrency, "must be at least 1"}
	case o.lease < 10*time.Millisecond:
		return &ConfigError{"Lease", o.lease, "must be at least 10 ms"}
	case o.renew <= 0 || o.renew >= o.lease-margin(o.lease):
		return &ConfigError{"RenewEvery", o.renew, fmt.Sprintf("must be positive and shorter than nine tenths of the lease of %s", o.lease)}
	case o.poll <= 0:
		return &ConfigError{"Poll", o.poll, "must be positive"}
	case o.query <= 0:
		return &ConfigError{"QueryTimeout", o.query, "must be positive"}
	case o.unknown != Dead && o.unknown != Park:
		return &ConfigError{"OnUnknown", int(o.unknown), "must be Dead or Park"}
	}
	return nil
}

// margin is how long before its lease lapses a job must have stopped.
func margin(lease time.Duration) time.Duration { return lease / 10 }

// newName tells workers apart, those of one host and pid too.
func newName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%.60s-%d-%s", host, os.Getpid(), newNonce())
}

func newNonce() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// owner is the worker that a token belongs to.
func owner(token string) string {
	name, _, _ := strings.Cut(token, ".")
	return name
}
