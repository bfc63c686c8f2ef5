package sqlqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/taskd-go/task/internal/textcut"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// An ending is a completion on its way into the tables.
type ending struct {
	*backend.Completion
	row  *row
	lean bool // with the errors of its attempts the row is too large: keep the payload as it is
}

const free = "UPDATE {jobs} SET reserved_token = NULL, reserved_at = NULL, lease_until = NULL, " +
	"attempts = attempts - ?, crashes = CASE WHEN crashes < 0 THEN 0 ELSE crashes END + ?, " + countSeq +
	", available_at = "

// Complete implements backend.Consumer. It stores the completions in one transaction, so they fail
// together.
func (c *consumer) Complete(ctx context.Context, completions []backend.Completion) []error {
	var ids []int64 // of all completions, in their order
	var done []int64
	var tokens []string
	var others []ending
	for i := range completions {
		e := ending{Completion: &completions[i], row: completions[i].Delivery.Receipt.(*row)}
		ids = append(ids, e.row.id)
		switch e.Outcome {
		case job.Succeeded, job.Discarded, job.Skipped:
			done, tokens = append(done, e.row.id), append(tokens, e.row.token.String)
		default:
			others = append(others, e)
		}
	}
	held, err := c.complete(ctx, done, tokens, others)
	if err != nil {
		return slices.Repeat([]error{err}, len(completions))
	}
	return lost(ids, held)
}

// complete returns the ids of those rows whose reservations were still held.
func (c *consumer) complete(
	ctx context.Context, done []int64, tokens []string, others []ending,
) (held []int64, err error) {
	if len(others) == 0 && c.d.returning() { // one statement is a transaction
		err = c.again(ctx, func() (err error) {
			held, err = c.deleteReserved(ctx, c.db, done, tokens)
			return err
		})
		return held, err
	}
	if len(done) == 0 && len(others) == 1 {
		ok, err := c.endAlone(ctx, others[0])
		if ok {
			held = []int64{others[0].row.id}
		}
		return held, err
	}
	err = c.inTx(ctx, func(tx *sql.Tx) error {
		held = nil
		if len(done) > 0 {
			gone, err := c.deleteReserved(ctx, tx, done, tokens)
			if err != nil {
				return err
			}
			held = gone
		}
		for _, e := range others {
			ok, err := c.endReservation(ctx, tx, e)
			if err != nil {
				return err
			}
			if ok {
				held = append(held, e.row.id)
			}
		}
		return nil
	})
	return held, err
}

func (s *Store) deleteReserved(ctx context.Context, x runner, ids []int64, tokens []string) ([]int64, error) {
	cond, args := s.reservations(ids, tokens)
	return s.change(ctx, x, "DELETE FROM {jobs}", nil, cond, args)
}

// endReservation frees a row for its next run, or moves it to the dead letters. It returns false if
// the row is no longer reserved under its token.
func (c *consumer) endReservation(ctx context.Context, tx *sql.Tx, e ending) (ok bool, err error) {
	cond, args := "id = ? AND reserved_token = ?", []any{e.row.id, e.row.token.String}
	if e.Lapsed { // it may have been renewed since it was read
		cond, args = cond+" AND lease_until = ?", append(args, e.row.leaseAsRead)
	}
	var changed []int64
	if e.Outcome == job.Dead {
		if e.lean {
			if err := c.buryLean(ctx, tx, e, cond, args); err != nil {
				return false, err
			}
		}
		changed, err = c.change(ctx, tx, "DELETE FROM {jobs}", nil, cond, args)
	} else {
		due, dueArg := "{now} + ?", delayMS(e.Delay)
		if !e.DueAt.IsZero() {
			due, dueArg = "?", e.DueAt.UnixMilli()
		}
		verb, set := free+due, []any{zeroOrOne(e.Uncount), zeroOrOne(e.Crashed), dueArg}
		if !e.lean {
			verb, set = verb+", payload = ?", append(set, string(e.Payload()))
		}
		changed, err = c.change(ctx, tx, verb, set, cond, args)
	}
	if err != nil || len(changed) == 0 {
		return false, err
	}
	if e.Outcome == job.Dead && !e.lean {
		err = c.bury(ctx, tx, e)
	}
	return err == nil, err
}

// endAlone is endReservation in a transaction of its own. If the database refuses the row as too
// large, endAlone leaves out the errors of the job's attempts: else the job would never end.
func (c *consumer) endAlone(ctx context.Context, e ending) (ok bool, err error) {
	for {
		err = c.inTx(ctx, func(tx *sql.Tx) (err error) {
			ok, err = c.endReservation(ctx, tx, e)
			return err
		})
		if e.lean || !c.d.tooLarge(err) {
			return ok, err
		}
		e.lean = true
	}
}

// maxCount is the largest number of the columns that count.
const maxCount = math.MaxInt32

// count returns the nearest number to n that a column takes: a job whose dead letter cannot be stored
// would never end.
func count[N int | int64](n N) int { return int(min(max(n, 0), maxCount)) }

func zeroOrOne(b bool) int {
	if b {
		return 1
	}
	return 0
}

const insertFailed = "INSERT INTO {failed} (job, queue, job_id, job_type, payload, error_class, error, reason, " +
	"history, failed_by, attempts, crashes, replays, priority, max_attempts, backoff_ms, timeout_ms, " +
	"unique_key, created_at, failed_at) "

// bury stores the dead letter of a row.
func (c *consumer) bury(ctx context.Context, tx *sql.Tx, e ending) error {
	letter, r := e.Letter, e.row
	history, err := historyOf(letter.Job, letter.Attempts)
	if err != nil {
		return err
	}
	_, err = c.exec(ctx, tx, insertFailed+"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now})",
		r.id, r.queue, storable(letter.Job.JobID), storable(letter.Job.JobType), string(e.Payload()),
		storable(letter.ErrorClass), storable(letter.Error), string(letter.Reason), history, c.session.Worker,
		count(r.attempts-zeroOrOne(e.Uncount)), count(r.crashes+zeroOrOne(e.Crashed)), count(letter.Replays),
		r.priority, r.maxAttempts, r.backoffMS, r.timeoutMS, r.uniqueKey, r.createdAt)
	return err
}

// buryLean stores the dead letter of a row with the payload of the row as it is and only the last
// error.
func (c *consumer) buryLean(ctx context.Context, tx *sql.Tx, e ending, cond string, condArgs []any) error {
	letter, r := e.Letter, e.row
	history, err := historyOf(letter.Job, letter.Attempts[len(letter.Attempts)-1:])
	if err != nil {
		return err
	}
	// PostgreSQL infers the types of these numbers from the columns that they are added to.
	const columns = "SELECT id, queue, ?, ?, payload, ?, ?, ?, ?, ?, attempts - attempts + ?, " +
		"crashes - crashes + ?, crashes - crashes + ?, priority, max_attempts, backoff_ms, timeout_ms, unique_key, created_at, {now} FROM {jobs} WHERE "
	args := []any{
		storable(letter.Job.JobID), storable(letter.Job.JobType), storable(letter.ErrorClass), storable(letter.Error),
		string(letter.Reason), history, c.session.Worker, count(r.attempts - zeroOrOne(e.Uncount)),
		count(r.crashes + zeroOrOne(e.Crashed)), count(letter.Replays),
	}
	_, err = c.exec(ctx, tx, insertFailed+columns+cond, append(args, condArgs...)...)
	return err
}

func historyOf(e job.Envelope, attempts []job.AttemptError) (string, error) {
	history, err := json.Marshal(attempts)
	if err != nil {
		return "", fmt.Errorf("queue: history of %s: %w", e.JobID, err)
	}
	return string(history), nil
}

// maxText is the most bytes of a text, within the 65,535 of MySQL's TEXT.
const maxText = 60_000

// storable makes text one that every database can store: cut to maxText, in UTF-8, without NUL. A
// job whose dead letter cannot be stored would never end.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(textcut.To(text, maxText), "\uFFFD"), "\x00", "\uFFFD")
	return textcut.To(text, maxText)
}
