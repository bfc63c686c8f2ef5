package queue

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// A Worker takes jobs from a Queue and runs them. It is safe for concurrent use.
type Worker struct {
	workerOptions
	q        *Queue
	handlers *job.Registry
	name     string

	stop     chan struct{} // closed when it must take no more jobs
	hurry    chan struct{} // closed when it must interrupt those that run
	stopOnce sync.Once
	hurryOne sync.Once

	mu        sync.Mutex
	sessions  sync.WaitGroup
	live      map[*session]bool
	abandoned []string
}

// NewWorker returns a worker that takes jobs from q for the handlers of a registry. The methods
// that run jobs return the error of a wrong option, and ErrUnsupported for a Queue of NewSync.
func NewWorker(q *Queue, handlers *job.Registry, opts ...WorkerOption) *Worker {
	o := workerOptions{
		concurrency: 10, lease: 30 * time.Second, poll: 250 * time.Millisecond, grace: 30 * time.Second,
		query: 10 * time.Second, queues: []backend.Weight{{Queue: q.queue}}, hooks: handlers,
	}
	for _, set := range opts {
		set(&o)
	}
	if o.renew == 0 {
		o.renew = o.lease / 3
	}
	o.err = o.check()
	w := &Worker{
		workerOptions: o, q: q, handlers: handlers, name: newName(),
		stop: make(chan struct{}), hurry: make(chan struct{}), live: map[*session]bool{},
	}
	w.runner = w.ownRunner()
	return w
}

// ownRunner returns a copy of the given Runner with what the worker sets itself.
func (w *Worker) ownRunner() *job.Runner {
	if w.runner == nil {
		w.runner = &job.Runner{Timeout: job.DefaultConfig().Timeout, Logger: w.q.logger}
	}
	r := *w.runner
	if r.Policy == (job.RetryPolicy{}) {
		r.Policy = job.DefaultRetryPolicy()
		r.Policy.MaxAttempts = job.Unlimited // what counts is each job's own number
	}
	if r.Name == "" {
		r.Name = w.name
	}
	if r.KeepErrors == 0 {
		r.KeepErrors = job.MaxFailures
	}
	if r.Logger == nil {
		r.Logger = w.q.logger
	}
	return &r
}

// Name returns the name of the worker in reservations and dead letters: host, pid and a nonce.
func (w *Worker) Name() string { return w.name }

// Work runs jobs until ctx ends, until it has taken max of them (0: no limit), or until Shutdown or
// Queue.Restart. Then it takes no more and returns when those that run are done and stored. It
// returns nil, ErrRestart after a restart, or an *AbandonedError that names the jobs whose handlers
// did not return in time. While the store does not answer it keeps trying; an error that wraps
// ErrSetup, such as missing tables, it returns at once.
func (w *Worker) Work(ctx context.Context, max int) error {
	_, err := w.run(ctx, max, false)
	return err
}

// ProcessOne runs one job, if one is due, and returns when its end is stored. It returns errors of
// the store, never of the job.
func (w *Worker) ProcessOne(ctx context.Context) (took bool, err error) {
	n, err := w.run(ctx, 1, true)
	return n > 0, err
}

// WorkUntilEmpty runs jobs until none is due and none runs, or it has taken max of them (0: no
// limit), and returns how many it took. It does not wait for delayed jobs, nor for those that
// failed and wait for their next attempt.
func (w *Worker) WorkUntilEmpty(ctx context.Context, max int) (n int, err error) {
	return w.run(ctx, max, true)
}

func (w *Worker) run(ctx context.Context, limit int, untilEmpty bool) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if limit <= 0 {
		limit = math.MaxInt
	}
	w.mu.Lock()
	if stopped(w.stop) {
		w.mu.Unlock()
		return 0, nil
	}
	w.sessions.Add(1)
	s := newSession(ctx, w, limit, untilEmpty)
	w.live[s] = true
	w.mu.Unlock()
	defer w.sessions.Done()

	err := s.run()
	abandoned := s.end()
	w.mu.Lock()
	delete(w.live, s)
	w.abandoned = append(w.abandoned, abandoned...)
	w.mu.Unlock()
	if len(abandoned) > 0 {
		err = errors.Join(err, &AbandonedError{IDs: abandoned})
	}
	return s.taken, err
}

// reserved returns the jobs that run in the worker, and those whose completions are not stored yet.
// Its own sweep leaves them alone when their leases have lapsed: an outage of the store is no
// crash.
func (w *Worker) reserved() (receipts []backend.Receipt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.live {
		s.mu.Lock()
		for _, d := range s.held {
			receipts = append(receipts, d.Receipt)
		}
		s.mu.Unlock()
	}
	return receipts
}

func stopped(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Shutdown makes all runs of the worker take no more jobs and waits until they have returned. When
// ctx ends first, it ends the contexts of the jobs that run and of Failed methods: jobs that return
// within half a second go back without an attempt, and an *AbandonedError names the others. Later
// runs of the worker do nothing.
func (w *Worker) Shutdown(ctx context.Context) error {
	w.mu.Lock()
	w.stopOnce.Do(func() { close(w.stop) })
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.sessions.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		w.hurryOne.Do(func() { close(w.hurry) })
		<-done // soon: a session waits for no handler then
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.abandoned) > 0 {
		return &AbandonedError{IDs: w.abandoned}
	}
	return nil
}
