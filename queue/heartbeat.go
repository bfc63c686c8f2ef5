package queue

import (
	"context"
	"errors"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// keepLeases renews the leases of all deliveries until ctx ends, and stops the jobs whose leases
// cannot be renewed.
func (s *session) keepLeases(ctx context.Context) {
	for wait := s.renew; ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		wait = s.renew
		if !s.renewAll(ctx) {
			wait = max(s.renew/10, time.Millisecond)
		}
	}
}

// renewAll renews all leases once. It returns false if the renewal of some failed, except by
// ErrLost.
func (s *session) renewAll(ctx context.Context) (ok bool) {
	s.loseExpired()
	held, earliest := s.deliveries()
	if len(held) == 0 {
		return true
	}
	receipts := make([]backend.Receipt, len(held))
	for i, d := range held {
		receipts[i] = d.Receipt
	}
	limited, cancel := context.WithDeadline(ctx, earlier(earliest, time.Now().Add(s.query)))
	defer cancel()
	sent := time.Now()
	errs := s.consumer.Extend(limited, receipts)
	failed, gone := renewed(errs)
	if failed != nil && ctx.Err() == nil {
		s.q.logger.Warn("queue: leases were not renewed", "worker", s.name, "jobs", len(receipts), "error", failed)
	}
	if gone {
		s.hearCancels(limited) // before a handler learns that its lease is lost
	}
	s.mu.Lock()
	for i, d := range held {
		switch {
		case errs == nil || errs[i] == nil:
			d.until = sent.Add(s.lease - margin(s.lease))
		case errors.Is(errs[i], backend.ErrLost) && s.held[d.ID] == d:
			d.cancel(job.ErrLeaseLost) // no effect on a job that has ended
		}
	}
	s.mu.Unlock()
	if failed != nil {
		s.loseExpired()
	}
	return failed == nil
}

// renewed returns the first error of a renewal except ErrLost, and whether there was an ErrLost.
func renewed(errs []error) (failed error, gone bool) {
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, backend.ErrLost):
			gone = true
		case failed == nil:
			failed = err
		}
	}
	return failed, gone
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// deliveries returns the held deliveries whose leases are not lost, and when the first of these
// leases must count as lost.
func (s *session) deliveries() (held []*delivery, earliest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.held {
		if d.ctx.Err() != nil && context.Cause(d.ctx) == job.ErrLeaseLost {
			continue
		}
		if len(held) == 0 || d.until.Before(earliest) {
			earliest = d.until
		}
		held = append(held, d)
	}
	return held, earliest
}

// loseExpired ends the contexts of jobs whose leases may have lapsed.
func (s *session) loseExpired() {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.held {
		if !now.Before(d.until) {
			d.cancel(job.ErrLeaseLost)
		}
	}
}
