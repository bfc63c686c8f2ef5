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

// A Worker takes jobs from a Queue and runs them. It is safe for concurrent use: calls of Work,
// ProcessOne and WorkUntilEmpty may run side by side.
type Worker struct {
	workerOptions
	q        *Queue
	handlers *job.Registry
	name     string

	stop     chan struct{} // closed: take no more jobs
	hurry    chan struct{} // closed: interrupt the running jobs
	stopOnce sync.Once
	hurryOne sync.Once

	mu        sync.Mutex
	sessions  sync.WaitGroup
	live      map[*session]bool
	abandoned []string
}

// NewWorker returns a worker that takes jobs from q and runs them with the given handlers. A wrong
// option makes Work, ProcessOne and WorkUntilEmpty return a *ConfigError; a Queue of NewSync makes
// them return ErrUnsupported.
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

// ownRunner returns a copy of the given Runner with the worker's defaults.
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
// Queue.Restart. Then it takes no more and returns when the running jobs are stored; except after
// the last of max, they have the time of the option Grace to finish. It returns nil, ErrRestart after a restart, or an *AbandonedError
// that names the jobs whose handlers did not return in time. While the store does not answer, Work
// keeps trying. It returns an error that wraps ErrSetup, such as missing tables, at once.
func (w *Worker) Work(ctx context.Context, max int) error {
	_, err := w.run(ctx, max, false)
	return err
}

// ProcessOne runs one job, if one is due, and returns when its end is stored. If ctx ends before
// that, the job has the time of the option Grace to finish. ProcessOne returns errors of the store
// and an *AbandonedError, never the job's error.
func (w *Worker) ProcessOne(ctx context.Context) (took bool, err error) {
	n, err := w.run(ctx, 1, true)
	return n > 0, err
}

// WorkUntilEmpty runs jobs until none is due and none runs, or until it has taken max of them (0:
// no limit), and returns how many it took. It does not wait for delayed jobs or for the next
// attempts of failed ones. It ends at the first error of the store.
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
	abandoned := s.end(err)
	w.mu.Lock()
	delete(w.live, s)
	w.abandoned = append(w.abandoned, abandoned...)
	w.mu.Unlock()
	if len(abandoned) > 0 {
		err = errors.Join(err, &AbandonedError{IDs: abandoned})
	}
	return s.taken, err
}

// reserved returns the receipts of the jobs that run in the worker or whose completions are not
// stored yet. The worker's own sweep spares them even if their leases have lapsed, since an outage
// of the store is no crash.
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

// Shutdown makes the running calls of Work, ProcessOne and WorkUntilEmpty take no more jobs, and
// waits until they have returned. If ctx ends first, Shutdown interrupts the running jobs and
// Failed methods at once, as the end of Grace does, and returns an *AbandonedError that names the
// jobs whose handlers do not return within half a second. After Shutdown, Work, ProcessOne and
// WorkUntilEmpty return at once and run nothing.
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
		<-done // soon: a session waits at most lastCall for handlers now
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.abandoned) > 0 {
		return &AbandonedError{IDs: w.abandoned}
	}
	return nil
}
