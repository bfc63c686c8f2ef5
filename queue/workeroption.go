package queue

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// A WorkerOption changes a Worker; see NewWorker.
type WorkerOption func(*workerOptions)

type workerOptions struct {
	concurrency int
	queues      []backend.Weight
	lease       time.Duration
	renew       time.Duration
	poll        time.Duration
	grace       time.Duration
	query       time.Duration
	unknown     Unknown
	runner      *job.Runner
	hooks       *job.Registry
	err         error
}

// Concurrency sets how many jobs each call of Work runs at once, default 10.
func Concurrency(n int) WorkerOption { return func(o *workerOptions) { o.concurrency = n } }

// Queues sets the queues that the worker takes jobs from: "a,b" takes from b only when a has none
// due, "a:3,b:1" looks at a first three times out of four. The default is the Queue's default
// queue.
func Queues(spec string) WorkerOption {
	return func(o *workerOptions) {
		queues, err := parseQueues(spec)
		if o.queues = queues; err != nil {
			o.err = err
		}
	}
}

// CheckQueues returns the error that the option Queues would cause.
func CheckQueues(spec string) error {
	_, err := parseQueues(spec)
	return err
}

// Lease sets how long a job stays reserved if its worker dies, default 30 s and at least 10 ms. A
// job may run longer: the worker renews the lease meanwhile.
func Lease(d time.Duration) WorkerOption { return func(o *workerOptions) { o.lease = d } }

// RenewEvery sets the time between renewals of leases, default a third of the lease. It must be
// shorter than nine tenths of the lease.
func RenewEvery(d time.Duration) WorkerOption { return func(o *workerOptions) { o.renew = d } }

// Poll sets the longest time between two looks for jobs when nothing wakes the worker, default 250
// ms. The worker varies it by a fifth, and waits up to 20 times as long after errors of the store.
func Poll(d time.Duration) WorkerOption { return func(o *workerOptions) { o.poll = d } }

// Grace sets how long the running jobs may take to finish after the end of the context, a Shutdown
// or a Restart, default 30 s; and how long a run that has no more jobs tries to store their ends.
// Then the contexts of the jobs end with ErrInterrupted, and they have half a second more to
// return. An interrupted run costs no attempt.
func Grace(d time.Duration) WorkerOption { return func(o *workerOptions) { o.grace = d } }

// QueryTimeout bounds each of the worker's calls of the store, default 10 s.
func QueryTimeout(d time.Duration) WorkerOption { return func(o *workerOptions) { o.query = d } }

// An Unknown says what a worker does with a job for whose type it has no handler.
type Unknown int

// What a worker does with a job of an unknown type.
const (
	UnknownDead Unknown = iota // it becomes a dead letter with the reason "unregistered"
	UnknownPark                // it goes back without an attempt and is due again after the backoff
)

// OnUnknown sets what happens to jobs of unknown types, default UnknownDead. Programs that share a
// queue set UnknownPark.
func OnUnknown(u Unknown) WorkerOption { return func(o *workerOptions) { o.unknown = u } }

// Runner sets the job.Runner that runs each job and decides what becomes of it: its policy, time
// limit, layers, log and events. If it has a Policy, the smaller of the policy's MaxAttempts and
// the job's own counts. Without this option a run takes at most 120 s, job.DefaultRetryPolicy gives
// the delays, and each job has the attempts that it was pushed with.
func Runner(r *job.Runner) WorkerOption { return func(o *workerOptions) { o.runner = r } }

// Hooks sets the registry in which the worker finds the Failed, Backoff and Middleware methods of
// jobs, if its own handlers only send the jobs to another process. With pooljob that is the
// registry given to pooljob.Register.
func Hooks(reg *job.Registry) WorkerOption { return func(o *workerOptions) { o.hooks = reg } }

func parseQueues(spec string) (queues []backend.Weight, err error) {
	anyWeight := false
	seen := map[string]bool{}
	for _, part := range strings.Split(spec, ",") {
		w := backend.Weight{Queue: strings.TrimSpace(part)}
		if name, weight, found := strings.Cut(w.Queue, ":"); found {
			n, err := strconv.Atoi(strings.TrimSpace(weight))
			if err != nil || n < 1 || n > math.MaxInt16 {
				return nil, &ConfigError{Option: "Queues", Value: fmt.Sprintf("%q", spec),
					Rule: "a weight must be a whole number from 1 to 32767"}
			}
			w.Queue, w.Weight, anyWeight = strings.TrimSpace(name), n, true
		}
		if checkQueue(w.Queue) != nil || seen[w.Queue] {
			return nil, &ConfigError{Option: "Queues", Value: fmt.Sprintf("%q", spec),
				Rule: "must be different names with commas between, each " + queueRule}
		}
		seen[w.Queue] = true
		queues = append(queues, w)
	}
	if anyWeight {
		for i := range queues {
			queues[i].Weight = max(queues[i].Weight, 1)
		}
	}
	return queues, nil
}

// draw returns the queues that are not paused in the order of the next look.
func draw(queues []backend.Weight, paused []string) (names []string) {
	var left []backend.Weight
	total := 0
	for _, w := range queues {
		if !slices.Contains(paused, w.Queue) && !slices.Contains(paused, "") {
			left, total = append(left, w), total+w.Weight
		}
	}
	for len(left) > 0 {
		i := 0
		if total > 0 {
			for n := mrand.IntN(total); n >= left[i].Weight; i++ {
				n -= left[i].Weight
			}
		}
		names, total = append(names, left[i].Queue), total-left[i].Weight
		left = append(left[:i:i], left[i+1:]...)
	}
	return names
}

func (o *workerOptions) check() error {
	for _, w := range o.queues {
		if err := checkQueue(w.Queue); err != nil && o.err == nil {
			return err
		}
	}
	switch {
	case o.err != nil:
		return o.err
	case o.concurrency < 1:
		return &ConfigError{Option: "Concurrency", Value: o.concurrency, Rule: "must be at least 1"}
	case o.lease < 10*time.Millisecond:
		return &ConfigError{Option: "Lease", Value: o.lease, Rule: "must be at least 10 ms"}
	case o.renew <= 0 || o.renew >= o.lease-margin(o.lease):
		return &ConfigError{Option: "RenewEvery", Value: o.renew,
			Rule: fmt.Sprintf("must be positive and shorter than nine tenths of the lease of %s", o.lease)}
	case o.poll <= 0:
		return &ConfigError{Option: "Poll", Value: o.poll, Rule: "must be positive"}
	case o.query <= 0:
		return &ConfigError{Option: "QueryTimeout", Value: o.query, Rule: "must be positive"}
	case o.unknown != UnknownDead && o.unknown != UnknownPark:
		return &ConfigError{Option: "OnUnknown", Value: int(o.unknown), Rule: "must be UnknownDead or UnknownPark"}
	}
	return nil
}

// margin returns how long before its lease lapses a job must have stopped.
func margin(lease time.Duration) time.Duration { return lease / 10 }

// newName returns a name that no other worker has, even one of the same host and pid.
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
