package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// A delivery is one reservation of a job, from Receive until its completion is stored.
type delivery struct {
	backend.Delivery
	ctx       context.Context
	cancel    context.CancelCauseFunc
	until     time.Time // when the lease must count as lost
	cancelled bool      // by Queue.Cancel
}

// begin starts the job of a received delivery.
func (s *session) begin(received backend.Delivery, until time.Time) {
	d := &delivery{Delivery: received, until: until}
	d.ctx, d.cancel = context.WithCancelCause(s.base)
	s.mu.Lock()
	if old := s.held[d.ID]; old != nil { // our own lease lapsed: the old run's result must not count
		old.cancel(job.ErrLeaseLost)
	}
	s.held[d.ID] = d
	s.running++
	s.occupied++
	s.mu.Unlock()
	s.goroutines.run(func() {
		c, ok := s.work(d)
		s.mu.Lock()
		s.running--
		last := s.running == 0
		s.mu.Unlock()
		if ok {
			s.completer.add(d, c, last)
		} else {
			s.drop(d)
		}
		s.mu.Lock()
		s.occupied--
		s.mu.Unlock()
		signal(s.changed)
	})
}

// drop removes a delivery that was stored or lost.
func (s *session) drop(d *delivery) {
	s.mu.Lock()
	if s.held[d.ID] == d {
		delete(s.held, d.ID)
	}
	s.mu.Unlock()
	d.cancel(nil)
	signal(s.changed)
}

// owns reports whether d is still the delivery of its job.
func (s *session) owns(d *delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[d.ID] == d && !s.closed
}

// work runs the job of d and returns what becomes of it. It returns false if there is nothing to
// store, because the lease was lost.
func (s *session) work(d *delivery) (c completion, ok bool) {
	c.Delivery = &d.Delivery
	e, err := d.Envelope()
	if err != nil {
		c.bury(job.ReasonDecode, err)
		s.event(&c)
		return c, true
	}
	c.Envelope = e
	limit := attemptLimit(e, s.runner.Policy)
	handler, known := s.handlers.Get(e.JobType)
	switch {
	case d.Crashes >= maxCrashes:
		c.bury(job.ReasonCrashed, fmt.Errorf("crashed %d workers", d.Crashes))
	case limit != job.Unlimited && d.Attempts > limit:
		c.bury(job.ReasonExhausted, fmt.Errorf("all %d attempts are used up", limit))
	case !known && s.unknown == UnknownPark:
		c.Outcome, c.reason, c.Uncount = job.Deferred, job.ReasonUnregistered, true
		c.Delay = policyFor(&d.Delivery, s.runner.Policy).Delay(e.Attempt)
	default:
		return s.decide(d, handler, e, limit)
	}
	s.event(&c)
	return c, true
}

// decide runs the handler through the Runner; its results are those of work.
func (s *session) decide(d *delivery, handler job.Handler, e job.Envelope, limit int) (c completion, ok bool) {
	runner := s.runnerFor(&d.Delivery, e)
	given := e.MaxAttempts
	e.MaxAttempts = limit // what the handler can count on
	decision := runner.Decide(d.ctx, handler, e)
	if decision.Abandoned != nil {
		<-decision.Abandoned // the next attempt must not run beside this one
	}
	if decision.Outcome == job.Unsettled {
		return completion{}, false
	}
	decision.Envelope.MaxAttempts = given
	c = completion{
		Completion: backend.Completion{
			Delivery: &d.Delivery, Outcome: decision.Outcome, Envelope: decision.Envelope, Delay: decision.Delay,
			Uncount: decision.Outcome == job.Deferred,
		},
		reason: decision.Reason, err: decision.Err,
	}
	if decision.Reason == job.ReasonCrashed {
		c.Crashed = true
		if decision.Outcome == job.Requeued && d.Crashes+1 >= maxCrashes {
			c.Outcome, c.Envelope = job.Dead, e // the letter adds this attempt itself
			c.Envelope.MaxAttempts = given
			s.event(&c)
		}
	}
	return c, true
}

// runnerFor returns the Runner with the delivery's options and the job's own methods applied.
func (s *session) runnerFor(d *backend.Delivery, e job.Envelope) *job.Runner {
	runner := *s.runner
	if runner.Go == nil {
		runner.Go = s.goroutines.run
	}
	runner.Policy = policyFor(d, runner.Policy)
	if d.Timeout != 0 {
		runner.Timeout = d.Timeout
	}
	if own := s.supervisedBy(e); own != nil {
		if layers := own.layers(e); len(layers) > 0 {
			runner.Middleware = slices.Concat(runner.Middleware, layers)
		}
		otherwise := runner.Backoff
		runner.Backoff = func(e job.Envelope) (time.Duration, bool) {
			d, ok := s.ownBackoff(own, e)
			if !ok && otherwise != nil {
				return otherwise(e)
			}
			return d, ok
		}
	}
	return &runner
}

// ownBackoff returns what the job's Backoff method returns, and false if there is no such method or
// it panicked.
func (s *session) ownBackoff(own supervised, e job.Envelope) (d time.Duration, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.q.logger.Error("queue: Backoff panicked", "jobId", e.JobID, "jobType", e.JobType, "panic", p)
			d, ok = 0, false
		}
	}()
	return own.backoff(e)
}

func (s *session) supervisedBy(e job.Envelope) supervised {
	h, _ := s.hooks.Get(e.JobType)
	own, _ := h.(supervised)
	return own
}

// interrupt ends the contexts of all handlers and Failed methods.
func (s *session) interrupt() {
	s.uncall(ErrInterrupted)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.held {
		d.cancel(ErrInterrupted)
	}
}

// cancelJobs ends the contexts of jobs that Queue.Cancel removed.
func (s *session) cancelJobs(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if d := s.held[id]; d != nil {
			d.cancelled = true
			d.cancel(ErrCancelled)
		}
	}
}

// hearCancels reads the orders again because deliveries are gone: their jobs may have been
// cancelled since the last look.
func (s *session) hearCancels(ctx context.Context) {
	if o, err := s.q.orders(ctx); err == nil {
		s.cancelJobs(o.Cancelled)
	}
}

// isCancelled reports whether d, which is lost, was lost because its job was cancelled.
func (s *session) isCancelled(d *delivery) bool {
	known := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return d.cancelled
	}
	if known() {
		return true
	}
	ctx, cancel := context.WithTimeout(s.base, s.query)
	defer cancel()
	s.hearCancels(ctx)
	return known()
}

// completed is called once for each completion: when it is stored (err is nil), when the delivery
// is no longer reserved (backend.ErrLost), or when the completer gives up (another error).
func (s *session) completed(d *delivery, c *completion, err error) {
	switch {
	case err == nil:
		if c.Outcome == job.Dead {
			s.failedHook(*c)
		}
	case !errors.Is(err, backend.ErrLost):
		s.lost(*c, fmt.Errorf("its end could not be stored and may be: %w", err))
	case !s.isCancelled(d):
		s.lost(*c, job.ErrLeaseLost)
	}
	s.drop(d)
}

func (s *session) lost(c completion, err error) {
	c.Outcome, c.reason, c.err = job.Unsettled, job.ReasonLeaseLost, err
	s.event(&c)
	s.q.logger.Warn("queue: "+c.Delivery.ID+" is unsettled", "worker", s.name, "jobType", c.Envelope.JobType, "error", err)
}

// swept is what completed is, for a lapsed delivery of another worker.
func (s *session) swept(c *completion) {
	s.event(c)
	if c.Outcome == job.Dead {
		s.failedHook(*c)
	}
}

const hookLimit = 30 * time.Second

// failedHook calls the Failed method of a job that has become a dead letter.
func (s *session) failedHook(c completion) {
	own := s.supervisedBy(c.Envelope)
	if own == nil {
		return
	}
	s.calls.Go(func() {
		ctx, cancel := context.WithTimeout(s.called, hookLimit)
		defer cancel()
		callFailed(ctx, own, c.Envelope, c.reason, c.err, s.q.logger)
	})
}

func callFailed(
	ctx context.Context, own supervised, e job.Envelope, reason job.Reason, err error, logger *slog.Logger,
) {
	defer func() {
		if p := recover(); p != nil {
			logger.Error("queue: Failed panicked", "jobId", e.JobID, "jobType", e.JobType, "panic", p)
		}
	}()
	if err == nil {
		err = errors.New(string(reason))
	}
	own.failed(ctx, e, &job.DeadError{Reason: reason, Err: err})
}

// event reports a completion that the Runner did not decide.
func (s *session) event(c *completion) {
	if s.runner.OnEvent != nil {
		s.runner.OnEvent(c.event(s.runner.Name))
	}
}
