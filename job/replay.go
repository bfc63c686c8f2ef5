package job

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

const replayPage = 100 // letters read at once

// A BrokenError names the letters that Replay set aside because it could not make a job of them.
// They stay in the store with the reason in DeadLetter.Broken.
type BrokenError struct{ IDs []string }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("job: %d dead letters set aside as broken: %s", len(e.IDs), strings.Join(e.IDs, ", "))
}

// Replay publishes the jobs of the dead letters that f chooses and removes each letter after its
// job was published. It takes the oldest letter first, or the order of f.IDs. Each job goes out as
// DeadLetter.Replayed returns it. Replay returns how many it published, or with f.DryRun how many
// it would. An id in f.IDs that the store does not have is ErrNoDeadLetter.
//
// A letter that holds no job, or whose job publish refuses with a *DecodeError, is set aside:
// Replay marks it as broken, continues with the next, and returns a *BrokenError at the end. Any
// other error of publish ends the replay and leaves the letter where it is. A crash between
// publishing and removing, and two replays of one letter at once, publish its job twice.
func Replay(
	ctx context.Context, store DeadLetters, publish func(context.Context, Envelope) error, f Filter,
) (n int, err error) {
	r := replay{store: store, publish: publish, filter: f, limit: max(1, f.Limit)}
	if f.Limit < 1 && len(f.IDs) > 0 {
		r.limit = len(f.IDs)
	}
	if f.Rate > 0 {
		r.pause = time.Duration(min(float64(time.Second)/f.Rate, float64(time.Hour)))
	}
	if f.DryRun || f.Progress != nil {
		if n, r.of, err = r.count(ctx); err != nil || f.DryRun {
			return n, err
		}
	}
	err = r.run(ctx)
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
	of      int       // letters to deal with, for Progress
	n       int
	broken  []string
}

func (r *replay) run(ctx context.Context) error {
	for d, err := range r.letters(ctx) {
		if err != nil {
			return err
		}
		if err := r.letter(ctx, d); err != nil {
			return err
		}
		if r.filter.Progress != nil {
			r.filter.Progress(r.n+len(r.broken), r.of)
		}
		if r.n == r.limit {
			break
		}
	}
	return nil
}

// count returns how many jobs a run would publish, and with how many letters it would deal.
func (r *replay) count(ctx context.Context) (n, of int, err error) {
	for d, err := range r.letters(ctx) {
		if err != nil {
			return 0, 0, err
		}
		of++
		if d.holdsJob() {
			n++
		}
		if n == r.limit {
			break
		}
	}
	return n, of, nil
}

// letters yields the letters that the filter chooses. It ends after an error.
func (r *replay) letters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	if len(r.filter.IDs) > 0 {
		return r.lettersByID(ctx)
	}
	return func(yield func(DeadLetter, error) bool) {
		for cursor := ""; ; {
			page, next, err := r.store.Page(ctx, r.filter.Queue, cursor, replayPage)
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			for _, d := range page {
				if r.filter.Match(d) && !yield(d, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}

func (r *replay) lettersByID(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		for _, id := range r.filter.IDs {
			d, err := r.store.Get(ctx, id)
			if err != nil {
				yield(d, err)
				return
			}
			if r.filter.Match(d) && !yield(d, nil) {
				return
			}
		}
	}
}

func (r *replay) letter(ctx context.Context, d DeadLetter) error {
	if !d.holdsJob() {
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

func (d DeadLetter) holdsJob() bool {
	return d.Raw == nil && d.Broken == "" && d.Job.JobType != ""
}

// Replayed returns the job of d for another start, with attempt 1. Its meta has the failures of the
// earlier attempts, the newest MaxFailures of them, under MetaErrors, and the number of replays,
// this one included, under MetaReplays.
func (d DeadLetter) Replayed() Envelope {
	e := d.Job.WithAttempt(1)
	e.Meta = cloned(e.Meta)
	e.Meta[MetaReplays] = number(int64(d.Replays) + 1)
	if len(d.Attempts) > 0 {
		setFailures(e.Meta, d.Attempts, MaxFailures)
	}
	return e
}

// setAside marks d as broken, unless it is marked already.
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

// A Filter chooses dead letters, for [Replay] and for a queue. A letter must meet every condition
// that is set; the zero Filter chooses them all. The fields from Limit on say how a replay runs.
type Filter struct {
	Queue        string
	IDs          []string // of the letters
	Types        []string // of the jobs
	ErrorClasses []string // see [ErrorClass]
	Reasons      []Reason
	Since, Until time.Time // died at Since or later and before Until; zero: no bound

	// Limit is the most letters that one run replays. Below 1, Replay takes one, or all of IDs; a
	// queue takes all.
	Limit int

	Rate   float64 // the most letters a second, evenly spread; not above 0: no limit
	DryRun bool    // count the letters and replay none

	// Progress, if not nil, is called during a replay. done is how many letters have been replayed
	// or set aside; of is how many there were when the replay began.
	Progress func(done, of int)

	// OnEvent, if not nil, is called by Replay for each letter that it replayed or set aside. A
	// queue does not call it.
	OnEvent func(Event)
}

// Match reports whether d meets the conditions.
func (f Filter) Match(d DeadLetter) bool {
	at := time.Unix(d.At, 0)
	return (f.Queue == "" || f.Queue == d.Queue) &&
		anyOf(f.IDs, d.ID) &&
		anyOf(f.Types, d.Job.JobType) &&
		anyOf(f.ErrorClasses, d.ErrorClass) &&
		anyOf(f.Reasons, d.Reason) &&
		(f.Since.IsZero() || !at.Before(f.Since)) &&
		(f.Until.IsZero() || at.Before(f.Until))
}

// anyOf reports whether value is in list; an empty list has every value.
func anyOf[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}
