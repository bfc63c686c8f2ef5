package queue

import (
	"context"
	"time"

	"github.com/taskd-go/task/job"
)

// keepLeases renews the leases of all deliveries until ctx ends, and lets go of those that cannot be kept.
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

// renewAll is one renewal. Not ok: the database did not answer.
func (s *session) renewAll(ctx context.Context) (ok bool) {
	s.loseExpired()
	held, earliest := s.deliveries()
	if len(held) == 0 {
		return true
	}
	ids, tokens := make([]int64, len(held)), make([]string, len(held))
	for i, d := range held {
		ids[i], tokens[i] = d.row.id, d.row.token.String
	}
	limited, cancel := context.WithDeadline(ctx, earlier(earliest, time.Now().Add(s.query)))
	defer cancel()
	sent := time.Now()
	kept, err := s.q.renew(limited, ids, tokens, s.lease)
	if err != nil {
		if ctx.Err() == nil {
			s.q.logger.Warn("queue: leases were not renewed", "worker", s.name, "jobs", len(ids), "error", err)
		}
		s.loseExpired()
		return false
	}
	if len(kept) < len(held) {
		s.hearCancels(limited) // before a handler is told that its lease is lost
	}
	still := set(kept)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range held {
		switch {
		case still[d.row.id]:
			d.until = sent.Add(s.lease - margin(s.lease))
		case s.held[d.row.id] == d:
			d.cancel(job.ErrLeaseLost) // nothing if its end is being stored
		}
	}
	return true
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// deliveries are those that are held, and when the first of them would be lost.
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

// loseExpired ends the handlers whose leases may have lapsed.
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
