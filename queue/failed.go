package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/taskd-go/task/job"
)

// A FailedJob is a dead letter.
type FailedJob struct {
	ID         string             `json:"id"`    // of this letter: what Retry takes
	Row        string             `json:"row"`   // the id that the job had and has again after Retry
	JobID      string             `json:"jobId"` // "db_" and Row if the payload has none
	Type       string             `json:"type"`
	Queue      string             `json:"queue"`
	ErrorClass string             `json:"errorClass"` // the Go type of the error
	Error      string             `json:"error"`
	Reason     job.Reason         `json:"reason"`
	History    []job.AttemptError `json:"history,omitempty"` // the failed attempts, the last one included
	FailedBy   string             `json:"failedBy"`          // the worker that buried it
	Attempts   int                `json:"attempts"`
	Crashes    int                `json:"crashes"`
	Replays    int                `json:"replays"`
	CreatedAt  time.Time          `json:"createdAt"`
	FailedAt   time.Time          `json:"failedAt"`
	Payload    string             `json:"payload"` // the envelope as it stood in the row

	row row // what Retry needs besides
}

// Exception is the error as the queue's document has it: "Class: message".
func (f FailedJob) Exception() string { return f.ErrorClass + ": " + f.Error }

// A Filter chooses dead letters.
type Filter = job.Filter

// where is the condition in SQL for the letters that f chooses.
func where(f Filter) (cond string, args []any) {
	conds := []string{"1 = 1"}
	add := func(c string, a ...any) { conds, args = append(conds, c), append(args, a...) }
	if f.Queue != "" {
		add("queue = ?", f.Queue)
	}
	addIn := func(column string, n int, at func(int) any) {
		if n == 0 {
			return
		}
		list := make([]any, n)
		for i := range list {
			list[i] = at(i)
		}
		add(column+" IN (?"+strings.Repeat(", ?", n-1)+")", list...)
	}
	if len(f.IDs) > 0 {
		ids := rowIDs(f.IDs)
		addIn("id", len(ids), func(i int) any { return ids[i] })
		if len(ids) == 0 {
			add("1 = 0")
		}
	}
	addIn("job_type", len(f.Types), func(i int) any { return f.Types[i] })
	addIn("error_class", len(f.ErrorClasses), func(i int) any { return f.ErrorClasses[i] })
	addIn("reason", len(f.Reasons), func(i int) any { return string(f.Reasons[i]) })
	if !f.Since.IsZero() {
		add("failed_at >= ?", millis(f.Since))
	}
	if !f.Until.IsZero() {
		add("failed_at < ?", millis(f.Until))
	}
	return strings.Join(conds, " AND "), args
}

// Failed yields the dead letters that f chooses, the oldest first. It reads a page at a time. After an error it ends.
func (q *Queue) Failed(ctx context.Context, f Filter) iter.Seq2[FailedJob, error] {
	return func(yield func(FailedJob, error) bool) {
		if q.sync != nil {
			return
		}
		cond, args := where(f)
		for after := int64(0); ; {
			page, err := q.failedPage(ctx, "id > ? AND "+cond+" ORDER BY id LIMIT ?", append(append([]any{after}, args...), listPage)...)
			if err != nil {
				yield(FailedJob{}, err)
				return
			}
			for _, letter := range page {
				if !yield(letter, nil) {
					return
				}
				after, _ = strconv.ParseInt(letter.ID, 10, 64) // it came from a number
			}
			if len(page) < listPage {
				return
			}
		}
	}
}

// FailedByID is one dead letter; ErrNotFound if there is none of that id.
func (q *Queue) FailedByID(ctx context.Context, id string) (FailedJob, error) {
	if q.sync != nil {
		return FailedJob{}, ErrSync
	}
	n, err := rowID(id)
	if err != nil {
		return FailedJob{}, err
	}
	page, err := q.failedPage(ctx, "id = ?", n)
	if err == nil && len(page) == 0 {
		err = fmt.Errorf("%w: dead letter %s", ErrNotFound, id)
	}
	if err != nil {
		return FailedJob{}, err
	}
	return page[0], nil
}

// CountFailed counts the dead letters that f chooses, by error class. Many of one class mean a fault that
// a replay will meet again.
func (q *Queue) CountFailed(ctx context.Context, f Filter) (byClass map[string]int, err error) {
	byClass = map[string]int{}
	if q.sync != nil {
		return byClass, nil
	}
	cond, args := where(f)
	statement := "SELECT error_class, COUNT(*) FROM {failed} WHERE " + cond + " GROUP BY error_class"
	err = q.each(ctx, q.read, statement, args, func(rows *sql.Rows) error {
		var class string
		var n int
		err := rows.Scan(&class, &n)
		byClass[class] = n
		return err
	})
	return byClass, err
}

// Prune removes the dead letters of a queue ("" is every queue) that died more than age ago, by the database's clock,
// and says how many those were. Nothing else ever removes one, but Retry.
func (q *Queue) Prune(ctx context.Context, queue string, age time.Duration) (n int64, err error) {
	if q.sync != nil {
		return 0, nil
	}
	cond, args := "failed_at < {now} - ?", []any{max(age, 0).Milliseconds()}
	if queue != "" {
		cond, args = cond+" AND queue = ?", append(args, queue)
	}
	return q.deleteInChunks(ctx, "{failed}", "failed_at", cond, args)
}

const failedColumns = "id, job, queue, job_id, job_type, payload, error_class, error, reason, history, failed_by, attempts, " +
	"crashes, replays, priority, max_attempts, backoff_ms, timeout_ms, unique_key, created_at, failed_at"

func (q *Queue) failedPage(ctx context.Context, cond string, args ...any) ([]FailedJob, error) {
	return q.failedFrom(ctx, q.read, cond, args...)
}

func (q *Queue) failedFrom(ctx context.Context, x sqlRunner, cond string, args ...any) (page []FailedJob, err error) {
	err = q.each(ctx, x, "SELECT "+failedColumns+" FROM {failed} WHERE "+cond, args, func(rows *sql.Rows) error {
		letter, err := scanFailed(rows)
		page = append(page, letter)
		return err
	})
	return page, err
}

func scanFailed(rows *sql.Rows) (f FailedJob, err error) {
	var history []byte
	var failedAt int64
	r := &f.row
	err = rows.Scan(&f.ID, &r.id, &r.queue, &f.JobID, &f.Type, &r.payload, &f.ErrorClass, &f.Error, &f.Reason, &history,
		&f.FailedBy, &f.Attempts, &f.Crashes, &f.Replays, &r.priority, &r.maxAttempts, &r.backoffMS, &r.timeoutMS,
		&r.uniqueKey, &r.createdAt, &failedAt)
	if err != nil {
		return f, err
	}
	_ = json.Unmarshal(history, &f.History) // for people; what another program wrote there must not hide the letter
	f.Row, f.Queue, f.Payload = r.idText(), r.queue, string(r.payload)
	f.CreatedAt, f.FailedAt = time.UnixMilli(r.createdAt), time.UnixMilli(failedAt)
	return f, nil
}
