package sqlqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

// A letter is a row of the dead letters. row has what a replay needs besides FailedJob.
type letter struct {
	backend.FailedJob
	row row
}

// where returns the condition in SQL for the letters that f chooses.
func where(f backend.Filter) (cond string, args []any) {
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
		add("failed_at >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		add("failed_at < ?", f.Until.UnixMilli())
	}
	return strings.Join(conds, " AND "), args
}

// Failed implements backend.Admin.
func (s *Store) Failed(ctx context.Context, f backend.Filter) iter.Seq2[backend.FailedJob, error] {
	return func(yield func(backend.FailedJob, error) bool) {
		cond, args := where(f)
		for after := int64(0); ; {
			page, err := s.failedPage(ctx, "id > ? AND "+cond+" ORDER BY id LIMIT ?",
				append(append([]any{after}, args...), listPage)...)
			if err != nil {
				yield(backend.FailedJob{}, err)
				return
			}
			for _, l := range page {
				if !yield(l.FailedJob, nil) {
					return
				}
				after, _ = strconv.ParseInt(l.ID, 10, 64) // it came from a number
			}
			if len(page) < listPage {
				return
			}
		}
	}
}

// FailedByID implements backend.Admin.
func (s *Store) FailedByID(ctx context.Context, id string) (backend.FailedJob, error) {
	n, err := rowID(id)
	if err != nil {
		return backend.FailedJob{}, err
	}
	page, err := s.failedPage(ctx, "id = ?", n)
	if err == nil && len(page) == 0 {
		err = fmt.Errorf("%w: dead letter %s", backend.ErrNotFound, id)
	}
	if err != nil {
		return backend.FailedJob{}, err
	}
	return page[0].FailedJob, nil
}

// CountFailed implements backend.Admin.
func (s *Store) CountFailed(ctx context.Context, f backend.Filter) (byClass map[string]int, err error) {
	byClass = map[string]int{}
	cond, args := where(f)
	statement := "SELECT error_class, COUNT(*) FROM {failed} WHERE " + cond + " GROUP BY error_class"
	err = s.each(ctx, s.read, statement, args, func(rows *sql.Rows) error {
		var class string
		var n int
		err := rows.Scan(&class, &n)
		byClass[class] = n
		return err
	})
	return byClass, err
}

// Prune implements backend.Admin.
func (s *Store) Prune(ctx context.Context, queue string, age time.Duration) (n int64, err error) {
	cond, args := "failed_at < {now} - ?", []any{max(age, 0).Milliseconds()}
	if queue != "" {
		cond, args = cond+" AND queue = ?", append(args, queue)
	}
	return s.deleteInChunks(ctx, "{failed}", "failed_at", cond, args)
}

const failedColumns = "id, job, queue, job_id, job_type, payload, error_class, error, reason, history, failed_by, " +
	"attempts, crashes, replays, priority, max_attempts, backoff_ms, timeout_ms, unique_key, created_at, failed_at"

func (s *Store) failedPage(ctx context.Context, cond string, args ...any) ([]letter, error) {
	return s.failedFrom(ctx, s.read, cond, args...)
}

func (s *Store) failedFrom(ctx context.Context, x runner, cond string, args ...any) (page []letter, err error) {
	err = s.each(ctx, x, "SELECT "+failedColumns+" FROM {failed} WHERE "+cond, args, func(rows *sql.Rows) error {
		l, err := scanFailed(rows)
		page = append(page, l)
		return err
	})
	return page, err
}

func scanFailed(rows *sql.Rows) (f letter, err error) {
	var history []byte
	var failedAt int64
	r := &f.row
	var attempts, crashes, replays, priority int64
	err = rows.Scan(&f.ID, &r.id, &r.queue, &f.JobID, &f.Type, &r.payload, &f.ErrorClass, &f.Error, &f.Reason, &history,
		&f.FailedBy, r.number("attempts", &attempts), r.number("crashes", &crashes), r.number("replays", &replays),
		r.number("priority", &priority), r.nullNumber("max_attempts", &r.maxAttempts),
		r.nullNumber("backoff_ms", &r.backoffMS), r.nullNumber("timeout_ms", &r.timeoutMS), &r.uniqueKey,
		r.number("created_at", &r.createdAt), r.number("failed_at", &failedAt))
	if err != nil {
		return f, err
	}
	_ = json.Unmarshal(history, &f.History) // a text of another program that is no JSON must not hide the letter
	f.Attempts, f.Crashes, f.Replays = count(attempts), count(crashes), count(replays)
	r.priority = min(count(priority), backend.MaxPriority)
	f.Row, f.Queue, f.Payload = r.idText(), r.queue, string(r.payload)
	f.CreatedAt, f.FailedAt = time.UnixMilli(r.createdAt), time.UnixMilli(failedAt)
	return f, nil
}
