package sqlqueue

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

const listPage = 100

// List implements backend.Admin.
func (s *Store) List(ctx context.Context, queue string) iter.Seq2[backend.JobInfo, error] {
	return func(yield func(backend.JobInfo, error) bool) {
		cond, args := "", []any{}
		if queue != "" {
			cond, args = " AND queue = ?", []any{queue}
		}
		for after := int64(0); ; {
			page, err := s.infos(ctx, "id > ?"+cond+" ORDER BY id LIMIT ?", append(append([]any{after}, args...), listPage)...)
			if err != nil {
				yield(backend.JobInfo{}, err)
				return
			}
			for _, info := range page {
				if !yield(info.JobInfo, nil) {
					return
				}
				after = info.id
			}
			if len(page) < listPage {
				return
			}
		}
	}
}

// Inspect implements backend.Admin.
func (s *Store) Inspect(ctx context.Context, id string) (backend.Record, error) {
	n, err := rowID(id)
	if err != nil {
		return backend.Record{}, err
	}
	live, err := s.infos(ctx, "id = ?", n)
	if err != nil {
		return backend.Record{}, err
	}
	dead, err := s.failedPage(ctx, "job = ? ORDER BY id LIMIT ?", n, listPage)
	if err != nil {
		return backend.Record{}, err
	}
	if len(live)+len(dead) == 0 {
		return backend.Record{}, fmt.Errorf("%w: job %s", backend.ErrNotFound, id)
	}
	var r backend.Record
	if len(live) > 0 {
		r.Job = &live[0].JobInfo
	}
	for _, l := range dead {
		r.Dead = append(r.Dead, l.FailedJob)
	}
	return r, nil
}

type listed struct {
	backend.JobInfo
	id int64
}

func (s *Store) infos(ctx context.Context, cond string, args ...any) (page []listed, err error) {
	err = s.each(ctx, s.read, "SELECT "+rowColumns+", {now} FROM {jobs} WHERE "+cond, args, func(rows *sql.Rows) error {
		var now int64
		r, err := scanRow(rows, &now)
		page = append(page, listed{r.info(now), r.id})
		return err
	})
	return page, err
}

func (r *row) info(now int64) backend.JobInfo {
	d := r.delivery()
	info := backend.JobInfo{
		ID: d.ID, Queue: d.Queue, State: "ready", Priority: d.Priority, Attempts: d.Attempts, Crashes: d.Crashes,
		AvailableAt: d.AvailableAt, CreatedAt: d.CreatedAt, ReservedBy: d.ReservedBy, ReservedAt: d.ReservedAt,
		LeaseUntil: d.LeaseUntil, UniqueKey: d.UniqueKey, Backoff: d.Backoff, Timeout: nullDuration(r.timeoutMS),
	}
	switch {
	case r.token.Valid:
		info.State = "reserved"
	case r.availableAt > now:
		info.State = "delayed"
	}
	e, err := d.Envelope()
	if err != nil {
		info.Raw, info.Broken = string(d.Payload), err.Error()
		return info
	}
	info.JobID, info.Type, info.MaxAttempts, info.Envelope = e.JobID, e.JobType, e.MaxAttempts, job.WithoutHistory(e)
	info.Failures, info.Replays = job.Failures(e), job.Replays(e)
	return info
}

// Counts implements backend.Admin.
func (s *Store) Counts(ctx context.Context, queue string) (c backend.Counts, err error) {
	now, err := s.now(ctx, s.read) // the same for ready and delayed, so that each job is one of them
	if err != nil {
		return backend.Counts{}, err
	}
	if err := s.countFree(ctx, queue, now, &c); err != nil {
		return backend.Counts{}, err
	}
	cond, args := "", []any{}
	if queue != "" {
		cond, args = " AND queue = ?", []any{queue}
	}
	// Reserved jobs are counted last: a job that is taken meanwhile is counted twice rather than
	// not at all.
	reserved := "SELECT COUNT(*) FROM (SELECT 1 FROM {jobs} WHERE reserved_token IS NOT NULL" +
		" AND lease_until IS NOT NULL" + cond + " ORDER BY lease_until LIMIT ?) c"
	err = s.each(ctx, s.read, reserved, append(args, backend.MaxCount),
		func(rows *sql.Rows) error { return rows.Scan(&c.Reserved) })
	return c, err
}

// countFree adds the jobs of a queue, or of every queue, that have no reservation.
func (s *Store) countFree(ctx context.Context, queue string, now int64, c *backend.Counts) error {
	if queue != "" {
		return s.countQueue(ctx, queue, now, c)
	}
	seen := map[string]bool{}
	for min(c.Ready, c.Delayed) < backend.MaxCount {
		next, found, err := s.nextQueue(ctx, queue)
		if err != nil || !found || seen[next] { // in SQLite a BLOB comes after every text, its own too
			return err
		}
		seen[next] = true
		if err := s.countQueue(ctx, next, now, c); err != nil {
			return err
		}
		queue = next
	}
	return nil
}

// nextQueue returns the first name after another of a queue that has a job without a reservation.
func (s *Store) nextQueue(ctx context.Context, after string) (name string, found bool, err error) {
	statement := "SELECT queue FROM {jobs} WHERE reserved_token IS NULL AND queue > ? ORDER BY queue LIMIT 1"
	err = s.each(ctx, s.read, statement, []any{after}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&name)
	})
	return name, found, err
}

// countQueue adds the jobs of one queue that have no reservation.
func (s *Store) countQueue(ctx context.Context, queue string, now int64, c *backend.Counts) error {
	var args []any
	for range backend.MaxPriority + 1 {
		args = append(args, queue, now, backend.MaxCount-c.Ready, queue, now, backend.MaxCount-c.Delayed)
	}
	err := s.each(ctx, s.read, freeCounts, args, func(rows *sql.Rows) error {
		var delayed bool
		var n int64
		err := rows.Scan(&delayed, &n)
		if delayed {
			c.Delayed += n
		} else {
			c.Ready += n
		}
		return err
	})
	c.Ready, c.Delayed = min(c.Ready, backend.MaxCount), min(c.Delayed, backend.MaxCount)
	return err
}

// freeCounts counts the due and the delayed rows of each priority of a queue, each in a range of
// the claim's index. Its parameters are, for each priority, the queue, the time and the limit of
// the due rows, and then those of the delayed rows.
var freeCounts = func() string {
	var counts []string
	for p := range backend.MaxPriority + 1 {
		level := " FROM {jobs} WHERE queue = ? AND priority = " + strconv.Itoa(p) +
			" AND reserved_token IS NULL AND available_at "
		for delayed, comparison := range []string{"<=", ">"} {
			counts = append(counts, "SELECT "+strconv.Itoa(delayed)+", COUNT(*) FROM (SELECT 1"+level+comparison+" ?"+
				" LIMIT ?) c"+strconv.Itoa(delayed)+strconv.Itoa(p))
		}
	}
	return strings.Join(counts, " UNION ALL ")
}()
