package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/taskd-go/task/job"
)

// A delivery is one reservation of a job, from its claim until its end is stored.
type delivery struct {
	row       row
	ctx       context.Context
	cancel    context.CancelCauseFunc
	until     time.Time // when the lease must count as lost
	cancelled bool      // by Queue.Cancel
}

// begin starts a job that was claimed.
func (s *session) begin(r row, until time.Time) {
	d := &delivery{row: r, until: until}
	d.ctx, d.cancel = context.WithCancelCause(s.base)
	s.mu.Lock()
	if old := s.held[r.id]; old != nil { // our own lease lapsed: what the old run answers must not count
		old.cancel(job.ErrLeaseLost)
	}
	s.held[r.id] = d
	s.running++
	s.mu.Unlock()
	s.crew.run(func() {
		v, ok := s.work(d)
		s.mu.Lock()
		s.running--
		last := s.running == 0
		s.mu.Unlock()
		if ok {
			s.settler.add(d, v, last)
		} else {
			s.drop(d)
		}
		signal(s.changed)
	})
}

// drop forgets a delivery whose row is not ours any more, or is stored.
func (s *session) drop(d *delivery) {
	s.mu.Lock()
	if s.held[d.row.id] == d {
		delete(s.held, d.row.id)
	}
	s.mu.Unlock()
	d.cancel(nil)
	signal(s.changed)
}

// owns reports whether d is still the delivery of its row.
func (s *session) owns(d *delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[d.row.id] == d && !s.closed
}

// work runs the job of d and says what shall become of its row; not ok: nothing, it is another's.
func (s *session) work(d *delivery) (v verdict, ok bool) {
	v = verdict{row: d.row}
	e, err := d.row.envelope()
	if err != nil {
		v.outcome, v.reason, v.err = job.Dead, job.ReasonDecode, err
		s.event(v)
		return v, true
	}
	v.envelope = e
	limit := attemptLimit(e, s.runner.Policy)
	handler, known := s.handlers.Get(e.JobType)
	switch {
	case d.row.crashes >= maxCrashes:
		v.outcome, v.reason, v.err = job.Dead, job.ReasonCrashed, fmt.Errorf("crashed %d workers", d.row.crashes)
	case limit != job.Unlimited && d.row.attempts > limit:
		v.outcome, v.reason, v.err = job.Dead, job.ReasonExhausted, fmt.Errorf("all %d attempts are used up", limit)
	case !known && s.unknown == Park:
		v.outcome, v.reason, v.giveBack = job.Deferred, job.ReasonUnregistered, true
		v.delay = backoff(d.row, s.runner.Policy, e.Attempt)
	default:
		return s.decide(d, handler, e, limit)
	}
	s.event(v)
	return v, true
}

// decide runs the handler.
func (s *session) decide(d *delivery, handler job.Handler, e job.Envelope, limit int) (v verdict, ok bool) {
	runner := s.runnerFor(d.row, e)
	given := e.MaxAttempts
	e.MaxAttempts = limit // what the handler can count on
	decision := runner.Decide(d.ctx, handler, e)
	if decision.Abandoned != nil {
		<-decision.Abandoned // until then the next attempt would run beside it
	}
	if decision.Outcome == job.Unsettled {
		return verdict{}, false
	}
	decision.Envelope.MaxAttempts = given
	v = verdict{
		row: d.row, outcome: decision.Outcome, envelope: decision.Envelope, delay: decision.Delay,
		giveBack: decision.Outcome == job.Deferred, reason: decision.Reason, err: decision.Err,
	}
	if decision.Reason == job.ReasonCrashed {
		v.crashed = true
		if decision.Outcome == job.Requeued && d.row.crashes+1 >= maxCrashes {
			v.outcome, v.envelope = job.Dead, e // the letter adds this attempt itself
			v.envelope.MaxAttempts = given
			s.event(v)
		}
	}
	return v, true
}

// runnerFor is the Runner with what the row and the job's own methods say.
func (s *session) runnerFor(r row, e job.Envelope) *job.Runner {
	runner := *s.runner
	if runner.Go == nil {
		runner.Go = s.crew.run
	}
	runner.Policy = rowPolicy(r, runner.Policy)
	if r.timeoutMS.Valid && r.timeoutMS.Int64 != 0 {
		runner.Timeout = time.Duration(r.timeoutMS.Int64) * time.Millisecond
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

// ownBackoff is what the job's Backoff method says, if it has one. Not ok when it panics.
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

// cancelJobs ends the handlers of jobs that Queue.Cancel took away.
func (s *session) cancelJobs(ids []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if d := s.held[id]; d != nil {
			d.cancelled = true
			d.cancel(ErrCancelled)
		}
	}
}

// hearCancels is for rows that are gone: they may be those of jobs that were cancelled since the last look.
func (s *session) hearCancels(ctx context.Context) {
	if c, err := s.q.readControl(ctx); err == nil {
		s.cancelJobs(c.cancelled)
	}
}

// isCancelled reports whether the job of d, whose row is gone, was cancelled.
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

// stored is called for each verdict when it is in the database, or when it is known that it cannot be.
func (s *session) stored(d *delivery, v verdict, held bool, err error) {
	switch {
	case err != nil:
		s.lost(v, fmt.Errorf("its end could not be stored and may be: %w", err))
	case !held && !s.isCancelled(d):
		s.lost(v, job.ErrLeaseLost)
	case held && v.outcome == job.Dead:
		s.failedHook(v)
	}
	s.drop(d)
}

func (s *session) lost(v verdict, err error) {
	v.outcome, v.reason, v.err = job.Unsettled, job.ReasonLeaseLost, err
	s.event(v)
	s.q.logger.Warn("queue: "+v.row.idText()+" is unsettled", "worker", s.name, "jobType", v.envelope.JobType, "error", err)
}

// tell is stored for a row that the sweep has ended.
func (s *session) tell(v verdict) {
	s.event(v)
	if v.outcome == job.Dead {
		s.failedHook(v)
	}
}

const hookLimit = 30 * time.Second

// failedHook runs the Failed method of a job that is a dead letter by now.
func (s *session) failedHook(v verdict) {
	own := s.supervisedBy(v.envelope)
	if own == nil {
		return
	}
	s.calls.Go(func() {
		ctx, cancel := context.WithTimeout(s.called, hookLimit)
		defer cancel()
		runHook(ctx, own, v, s.q)
	})
}

func runHook(ctx context.Context, own supervised, v verdict, q *Queue) {
	defer func() {
		if p := recover(); p != nil {
			q.logger.Error("queue: Failed panicked", "jobId", v.envelope.JobID, "jobType", v.envelope.JobType, "panic", p)
		}
	}()
	err := v.err
	if err == nil {
		err = errors.New(string(v.reason))
	}
	own.failed(ctx, v.envelope, &job.DeadError{Reason: v.reason, Err: err})
}

var eventKinds = map[job.Outcome]job.EventKind{
	job.Dead: job.EventDead, job.Requeued: job.EventRequeued, job.Deferred: job.EventDeferred, job.Unsettled: job.EventUnsettled,
}

// event tells of what the Runner did not decide.
func (s *session) event(v verdict) {
	if s.runner.OnEvent == nil {
		return
	}
	s.runner.OnEvent(job.Event{
		Kind: eventKinds[v.outcome], By: s.runner.Name, At: time.Now(), JobID: v.envelope.JobID, JobType: v.envelope.JobType,
		Attempt: v.row.attempts, Delay: v.delay, Reason: v.reason, Err: v.err,
	})
}
