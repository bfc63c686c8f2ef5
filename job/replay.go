package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const replayPage = 100 // letters read at once

// A Filter chooses dead letters. Each condition that is set must hold.
type Filter struct {
	Queue   string
	IDs     []string // of the letters
	Types   []string // of the jobs
	Reasons []Reason
	Since   time.Time // died at this time or later
	Until   time.Time // died before this time

	Limit   int         // at most so many; below 1: one, or all of IDs
	Rate    float64     // at most so many a second, evenly; <= 0: as fast as they are published
	OnEvent func(Event) // told of each letter that was replayed or set aside
}

// Match reports whether d meets the conditions.
func (f Filter) Match(d DeadLetter) bool {
	at := time.Unix(d.At, 0)
	return (f.Queue == "" || f.Queue == d.Queue) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, d.ID)) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, d.Job.JobType)) &&
		(len(f.Reasons) == 0 || slices.Contains(f.Reasons, d.Reason)) &&
		(f.Since.IsZero() || !at.Before(f.Since)) &&
		(f.Until.IsZero() || at.Before(f.Until))
}

// A BrokenError names letters that Replay passed over since it could not make a job of them. They stay in the store
// with the reason in DeadLetter.Broken.
type BrokenError struct{ IDs []string }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("job: %d dead letters set aside as broken: %s", len(e.IDs), strings.Join(e.IDs, ", "))
}

// Replay publishes the dead letters that f chooses, the oldest first, and removes each one after it was published.
// It returns how many were. A job keeps everything but its attempt, which is 1 again, and its meta, which says how
// often it was replayed and how it had failed.
//
// The first letter that cannot be published ends the replay; it stays where it is. A letter that holds no job is set
// aside and does not: the rest is replayed and the error is a *BrokenError. A crash between publishing and
// removing, like two replays of one letter at once, publishes it twice.
func Replay(ctx context.Context, store DeadLetters, publish func(context.Context, Envelope) error, f Filter) (n int, err error) {
	limit := max(1, f.Limit)
	if f.Limit < 1 && len(f.IDs) > 0 {
		limit = len(f.IDs)
	}
	r := replay{store: store, publish: publish, filter: f, limit: limit}
	if f.Rate > 0 {
		r.pause = time.Duration(min(float64(time.Second)/f.Rate, float64(time.Hour)))
	}
	if len(f.IDs) > 0 {
		err = r.chosen(ctx)
	} else {
		err = r.pages(ctx)
	}
	if err == nil && len(r.broken) > 0 {
		err = &BrokenError{IDs: r.broken}
	}
	return r.n, err
}

type replay struct {
	store   DeadLetters
	publish func(context.Context, Envelope) error
	filter  Filter
	limit   int
	pause   time.Duration
	next    time.Time // when the next one may be published
	n       int
	broken  []string
}

func (r *replay) chosen(ctx context.Context) error {
	for _, id := range r.filter.IDs {
		d, err := r.store.Get(ctx, id)
		if err != nil {
			return err
		}
		if err := r.letter(ctx, d); err != nil || r.n == r.limit {
			return err
		}
	}
	return nil
}

func (r *replay) pages(ctx context.Context) error {
	for cursor := ""; ; {
		page, next, err := r.store.Page(ctx, r.filter.Queue, cursor, replayPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			if err := r.letter(ctx, d); err != nil || r.n == r.limit {
				return err
			}
		}
		if next == "" {
			return nil
		}
		cursor = next
	}
}

func (r *replay) letter(ctx context.Context, d DeadLetter) error {
	if !r.filter.Match(d) {
		return nil
	}
	if d.Raw != nil || d.Broken != "" || d.Job.JobType == "" {
		return r.setAside(ctx, d, errors.New("it holds no job"))
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	err := r.publish(ctx, d.Replayed())
	var unreadable *DecodeError
	switch {
	case errors.As(err, &unreadable):
		return r.setAside(ctx, d, err)
	case err != nil:
		return fmt.Errorf("job: replay of %s: %w", d.ID, err)
	}
	r.n++
	if _, err := r.store.Remove(context.WithoutCancel(ctx), d.ID); err != nil {
		return fmt.Errorf("job: %s was replayed and is still a dead letter: %w", d.ID, err)
	}
	r.event(EventReplayed, d, nil)
	return nil
}

// Replayed returns the job of d as it starts again: attempt 1, the failures of its earlier attempts, at most MaxFailures,
// under MetaErrors, and under MetaReplays how often it has been replayed, this time included.
func (d DeadLetter) Replayed() Envelope {
	e := d.Job.WithAttempt(1)
	e.Meta = cloned(e.Meta)
	e.Meta[MetaReplays] = number(int64(d.Replays) + 1)
	if len(d.Attempts) > 0 {
		setFailures(e.Meta, d.Attempts, MaxFailures)
	}
	return e
}

// setAside marks d, once, and passes over it.
func (r *replay) setAside(ctx context.Context, d DeadLetter, why error) error {
	r.broken = append(r.broken, d.ID)
	if d.Broken != "" {
		return nil
	}
	d.Broken = why.Error()
	if _, err := r.store.Put(ctx, d); err != nil {
		return fmt.Errorf("job: set %s aside: %w", d.ID, err)
	}
	r.event(EventSetAside, d, why)
	return nil
}

func (r *replay) wait(ctx context.Context) error {
	if r.pause == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Until(r.next))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case now := <-timer.C:
		r.next = now.Add(r.pause)
		return nil
	}
}

func (r *replay) event(kind EventKind, d DeadLetter, err error) {
	if r.filter.OnEvent != nil {
		r.filter.OnEvent(Event{Kind: kind, At: time.Now(), JobID: d.Job.JobID, JobType: d.Job.JobType,
			Attempt: d.Job.Attempt, Reason: d.Reason, Err: err})
	}
}
