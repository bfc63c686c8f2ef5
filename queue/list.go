package queue

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"time"

	"github.com/taskd-go/task/job"
)

// A JobInfo is a live job as the table has it.
type JobInfo struct {
	ID          string         `json:"id"`
	Queue       string         `json:"queue"`
	State       string         `json:"state"` // ready, delayed or reserved
	JobID       string         `json:"jobId"`
	Type        string         `json:"type"`
	Priority    int            `json:"priority"`
	Attempts    int            `json:"attempts"`
	MaxAttempts int            `json:"maxAttempts"`
	Crashes     int            `json:"crashes"`
	AvailableAt time.Time      `json:"availableAt"`
	CreatedAt   time.Time      `json:"createdAt"`
	ReservedBy  string         `json:"reservedBy,omitempty"` // host, pid and a nonce of the worker
	ReservedAt  time.Time      `json:"reservedAt,omitzero"`
	LeaseUntil  time.Time      `json:"leaseUntil,omitzero"`
	UniqueKey   string         `json:"uniqueKey,omitempty"`
	Backoff     *time.Duration `json:"backoff,omitempty"` // nanoseconds; nil: the worker's policy
	Timeout     *time.Duration `json:"timeout,omitempty"` // nanoseconds; nil: the worker's, negative: none

	Failures []job.AttemptError `json:"failures,omitempty"` // of earlier attempts
	Replays  int                `json:"replays,omitempty"`
	Envelope job.Envelope       `json:"envelope,omitzero"`
	Raw      string             `json:"raw,omitempty"` // the payload when it is no envelope
	Broken   string             `json:"broken,omitempty"`
}

// A Record is what Inspect finds: the job while it lives, and the dead letters that it left, the newest last.
type Record struct {
	Job  *JobInfo    `json:"job,omitempty"`
	Dead []FailedJob `json:"dead,omitempty"`
}

const listPage = 100

// List yields the live jobs of a queue ("" is every queue) in the order of their ids. It reads a page at a time, so
// jobs may come and go meanwhile. After an error it ends.
func (q *Queue) List(ctx context.Context, queue string) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		if q.sync != nil {
			return
		}
		cond, args := "", []any{}
		if queue != "" {
			cond, args = " AND queue = ?", []any{queue}
		}
		for after := int64(0); ; {
			page, err := q.infos(ctx, "id > ?"+cond+" ORDER BY id LIMIT ?", append(append([]any{after}, args...), listPage)...)
			if err != nil {
				yield(JobInfo{}, err)
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

// Inspect finds a job by the id that Push returned: alive, dead, or both in turn. ErrNotFound: neither.
func (q *Queue) Inspect(ctx context.Context, id string) (Record, error) {
	if q.sync != nil {
		return Record{}, ErrSync
	}
	n, err := rowID(id)
	if err != nil {
		return Record{}, err
	}
	var r Record
	live, err := q.infos(ctx, "id = ?", n)
	if err != nil {
		return Record{}, err
	}
	if len(live) > 0 {
		r.Job = &live[0].JobInfo
	}
	if r.Dead, err = q.failedPage(ctx, "job = ? ORDER BY id LIMIT ?", n, listPage); err != nil {
		return Record{}, err
	}
	if r.Job == nil && r.Dead == nil {
		return Record{}, fmt.Errorf("%w: job %s", ErrNotFound, id)
	}
	return r, nil
}

type listed struct {
	JobInfo
	id int64
}

func (q *Queue) infos(ctx context.Context, cond string, args ...any) (page []listed, err error) {
	err = q.each(ctx, q.read, "SELECT "+rowColumns+", {now} FROM {jobs} WHERE "+cond, args, func(rows *sql.Rows) error {
		var now int64
		r, err := scanRow(rows, &now)
		page = append(page, listed{r.info(now), r.id})
		return err
	})
	return page, err
}

func (r *row) info(now int64) JobInfo {
	info := JobInfo{
		ID: r.idText(), Queue: r.queue, State: "ready", Priority: r.priority, Attempts: r.attempts, Crashes: r.crashes,
		AvailableAt: time.UnixMilli(r.availableAt), CreatedAt: time.UnixMilli(r.createdAt), UniqueKey: r.uniqueKey.String,
		Backoff: nullDuration(r.backoffMS), Timeout: nullDuration(r.timeoutMS),
	}
	switch {
	case r.token.Valid:
		info.State, info.ReservedBy = "reserved", owner(r.token.String)
		info.ReservedAt, info.LeaseUntil = time.UnixMilli(r.reservedAt.Int64), time.UnixMilli(r.leaseUntil.Int64)
	case r.availableAt > now:
		info.State = "delayed"
	}
	e, err := r.envelope()
	if err != nil {
		info.Raw, info.Broken = string(r.payload), err.Error()
		return info
	}
	letter := job.NewDeadLetter(r.queue, e, nil) // takes the history out of the meta
	info.JobID, info.Type, info.MaxAttempts, info.Envelope = e.JobID, e.JobType, e.MaxAttempts, letter.Job
	info.Failures, info.Replays = job.Failures(e), letter.Replays
	return info
}

func nullDuration(ms sql.NullInt64) *time.Duration {
	if !ms.Valid {
		return nil
	}
	d := time.Duration(ms.Int64) * time.Millisecond
	return &d
}
