package sqlqueue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// Retry implements backend.Admin. It moves each letter in a transaction of its own.
func (s *Store) Retry(ctx context.Context, ids ...string) error {
	var taken []string
	for _, id := range ids {
		n, err := rowID(id)
		if err != nil {
			return err
		}
		back, blocked, err := s.replay(ctx, []int64{n})
		if err == nil && back+len(blocked) == 0 {
			err = fmt.Errorf("%w: dead letter %s", backend.ErrNotFound, id)
		}
		if err != nil {
			return err
		}
		taken = append(taken, blocked...)
	}
	return takenError(taken)
}

func takenError(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return &backend.TakenError{IDs: ids}
}

const replayChunk = 100

// RetryAll implements backend.Admin. It moves up to 100 letters in one transaction.
func (s *Store) RetryAll(ctx context.Context, f backend.Filter) (n int, err error) {
	of, err := s.matching(ctx, f)
	if err != nil || f.DryRun {
		return of, err
	}
	r := replaying{s: s}
	cond, args := where(f)
	pause := newPacer(f.Rate)
	for after := int64(0); r.done() < of; {
		ids, err := s.idsOf(ctx, s.read, "SELECT id FROM {failed} WHERE id > ? AND "+cond+" ORDER BY id LIMIT ?",
			slices.Concat([]any{after}, args, []any{min(pause.chunk, of-r.done())}))
		if err != nil {
			return r.back, err
		}
		if len(ids) == 0 {
			break
		}
		if err := pause.wait(ctx); err != nil {
			return r.back, err
		}
		err = r.replay(ctx, ids)
		if err != nil {
			return r.back, err
		}
		after = ids[len(ids)-1]
		if f.Progress != nil {
			f.Progress(r.done(), of)
		}
	}
	return r.back, errors.Join(append(r.refused, takenError(r.taken))...)
}

// A replaying is the state of a RetryAll.
type replaying struct {
	s       *Store
	back    int
	taken   []string
	refused []error // *backend.ReplayError of letters that the database refused
	suspect bool    // the last letter was refused for another reason than its size
}

func (r *replaying) done() int { return r.back + len(r.taken) + len(r.refused) }

// replay moves letters back, one by one if they fail together.
func (r *replaying) replay(ctx context.Context, ids []int64) error {
	back, taken, err := r.s.replay(ctx, ids)
	if err == nil {
		r.back, r.taken, r.suspect = r.back+back, append(r.taken, taken...), false
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	if len(ids) > 1 {
		for _, id := range ids {
			if err := r.replay(ctx, []int64{id}); err != nil {
				return err
			}
		}
		return nil
	}
	suspect := !r.s.d.tooLarge(err)
	if suspect && r.suspect {
		return err
	}
	r.suspect = suspect
	r.refused = append(r.refused, &backend.ReplayError{ID: strconv.FormatInt(ids[0], 10), Err: err})
	return nil
}

// matching returns how many letters f chooses, at most f.Limit.
func (s *Store) matching(ctx context.Context, f backend.Filter) (n int, err error) {
	byClass, err := s.CountFailed(ctx, f)
	for _, some := range byClass {
		n += some
	}
	if f.Limit > 0 {
		n = min(n, f.Limit)
	}
	return n, err
}

// replay moves letters back in one transaction and skips those that are gone. If a unique key is
// taken after withFreeKeys looked, the transaction fails, and the next try finds the key taken.
func (s *Store) replay(ctx context.Context, ids []int64) (back int, taken []string, err error) {
	for range replayTries {
		if back, taken, err = s.replayOnce(ctx, ids); !s.d.duplicate(err) {
			break
		}
	}
	return back, taken, err
}

const replayTries = 3

func (s *Store) replayOnce(ctx context.Context, ids []int64) (back int, taken []string, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		back, taken = 0, nil
		in, args := s.d.ids("id", ids)
		// Of two calls that replay one letter, the second waits here and then finds it gone.
		letters, err := s.failedFrom(ctx, tx, in+" ORDER BY id"+s.d.lock(), args...)
		if err != nil {
			return err
		}
		letters, taken, err = s.withFreeKeys(ctx, tx, letters)
		if err != nil || len(letters) == 0 {
			return err
		}
		back = len(letters)
		return s.moveBack(ctx, tx, letters)
	})
	if err != nil { // the transaction was rolled back
		return 0, nil, err
	}
	return back, taken, nil
}

// withFreeKeys returns the letters whose unique keys no live job has, and the ids of the others.
func (s *Store) withFreeKeys(
	ctx context.Context, tx *sql.Tx, letters []letter,
) (free []letter, taken []string, err error) {
	given := map[string]bool{}
	for _, letter := range letters {
		if key := letter.row.uniqueKey; key.Valid {
			holder, err := s.keyHolder(ctx, tx, key.String)
			if err != nil {
				return nil, nil, err
			}
			if holder != "" || given[key.String] {
				taken = append(taken, letter.ID)
				continue
			}
			given[key.String] = true
		}
		free = append(free, letter)
	}
	return free, taken, nil
}

func (s *Store) moveBack(ctx context.Context, tx *sql.Tx, letters []letter) error {
	const values = "(?, ?, ?, ?, ?, {now}, ?, ?, ?, ?)"
	ids, args := make([]int64, len(letters)), make([]any, 0, 9*len(letters))
	for i, letter := range letters {
		r := letter.row
		ids[i], _ = strconv.ParseInt(letter.ID, 10, 64) // it came from a number
		args = append(args, r.id, r.queue, replayedPayload(letter), r.priority, r.maxAttempts, r.uniqueKey, r.backoffMS,
			r.timeoutMS, r.createdAt)
	}
	in, inArgs := s.d.ids("id", ids)
	if _, err := s.exec(ctx, tx, "DELETE FROM {failed} WHERE "+in, inArgs...); err != nil {
		return err
	}
	_, err := s.exec(ctx, tx, "INSERT INTO {jobs} (id, queue, payload, priority, max_attempts, available_at, "+
		"unique_key, backoff_ms, timeout_ms, created_at) VALUES "+
		values+strings.Repeat(", "+values, len(letters)-1), args...)
	return err
}

// replayedPayload returns the payload with attempt 1 and the history in its meta. A payload that is
// no envelope stays as it is.
func replayedPayload(f letter) string {
	e, err := job.Decode(f.row.payload)
	if err != nil {
		return f.Payload
	}
	e.JobID = f.JobID
	e = job.DeadLetter{Job: e, Attempts: f.History, Replays: f.Replays}.Replayed()
	encoded, err := e.Encode()
	if err != nil {
		return f.Payload
	}
	return string(encoded)
}

// A pacer spreads chunks over time, so that at most rate rows a second move.
type pacer struct {
	chunk int
	pause time.Duration
	next  time.Time
}

func newPacer(rate float64) *pacer {
	if !(rate > 0) {
		return &pacer{chunk: replayChunk}
	}
	chunk := int(min(max(rate/10, 1), replayChunk))
	return &pacer{chunk: chunk, pause: time.Duration(min(float64(chunk)/rate*float64(time.Second), float64(time.Hour)))}
}

func (p *pacer) wait(ctx context.Context) error {
	if p.pause == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Until(p.next))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case now := <-timer.C:
		p.next = now.Add(p.pause)
		return nil
	}
}
