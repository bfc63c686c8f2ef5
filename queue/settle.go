package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/taskd-go/task/job"
)

// A verdict is what shall become of a reserved row.
type verdict struct {
	row      row
	outcome  job.Outcome
	envelope job.Envelope // as it goes on; zero when the payload is none
	delay    time.Duration
	dueAt    int64 // in place of delay: the database's time; 0: none
	giveBack bool  // the attempt does not count
	crashed  bool  // the run cost a worker
	reason   job.Reason
	err      error

	lapsed bool // the row may be taken under its old lease only
	lean   bool // with what it has gathered the row is too large for the database, so the payload stays as it is
}

const free = "UPDATE {jobs} SET reserved_token = NULL, reserved_at = NULL, lease_until = NULL, attempts = attempts - ?, crashes = crashes + ?, seq = seq + 1, available_at = "

// settle stores verdicts in one transaction and returns the ids of those whose reservations were still held.
func (q *Queue) settle(ctx context.Context, verdicts []verdict, by string) (held map[int64]bool, err error) {
	var done []int64
	var tokens []string
	var others []verdict
	for _, v := range verdicts {
		switch v.outcome {
		case job.Succeeded, job.Discarded, job.Skipped:
			done, tokens = append(done, v.row.id), append(tokens, v.row.token.String)
		default:
			others = append(others, v)
		}
	}
	if len(others) == 0 && q.d.returning() { // one statement is a transaction
		var gone []int64
		err = q.again(ctx, func() (err error) {
			gone, err = q.deleteReserved(ctx, q.db, done, tokens)
			return err
		})
		return set(gone), err
	}
	if len(done) == 0 && len(others) == 1 {
		ok, err := q.endAlone(ctx, others[0], by)
		return map[int64]bool{others[0].row.id: ok}, err
	}
	err = q.inTx(ctx, func(tx *sql.Tx) error {
		held = map[int64]bool{}
		if len(done) > 0 {
			gone, err := q.deleteReserved(ctx, tx, done, tokens)
			if err != nil {
				return err
			}
			held = set(gone)
		}
		for _, v := range others {
			ok, err := q.endReservation(ctx, tx, v, by)
			if err != nil {
				return err
			}
			if ok {
				held[v.row.id] = true
			}
		}
		return nil
	})
	return held, err
}

func set(ids []int64) map[int64]bool {
	m := make(map[int64]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}

func (q *Queue) deleteReserved(ctx context.Context, x sqlRunner, ids []int64, tokens []string) ([]int64, error) {
	cond, args := q.reservations(ids, tokens)
	return q.change(ctx, x, "DELETE FROM {jobs}", nil, cond, args)
}

// endReservation frees a row for its next run or buries it. Not ok: the reservation is another's by now.
func (q *Queue) endReservation(ctx context.Context, tx *sql.Tx, v verdict, by string) (ok bool, err error) {
	cond, args := "id = ? AND reserved_token = ?", []any{v.row.id, v.row.token.String}
	if v.lapsed { // it may have been renewed since it was read
		cond, args = cond+" AND lease_until = ?", append(args, v.row.leaseUntil.Int64)
	}
	var changed []int64
	if v.outcome == job.Dead {
		if v.lean {
			if err := q.buryLean(ctx, tx, v, by, cond, args); err != nil {
				return false, err
			}
		}
		changed, err = q.change(ctx, tx, "DELETE FROM {jobs}", nil, cond, args)
	} else {
		due, dueArg := "{now} + ?", delayMS(v.delay)
		if v.dueAt != 0 {
			due, dueArg = "?", v.dueAt
		}
		verb, set := free+due, []any{number(v.giveBack), number(v.crashed), dueArg}
		if !v.lean {
			verb, set = verb+", payload = ?", append(set, v.payload())
		}
		changed, err = q.change(ctx, tx, verb, set, cond, args)
	}
	if err != nil || len(changed) == 0 {
		return false, err
	}
	if v.outcome == job.Dead && !v.lean {
		err = q.bury(ctx, tx, v, by)
	}
	return err == nil, err
}

// endAlone is endReservation in a transaction of its own. What is too large for the database with the errors that it
// gathered ends without them: else it would run for ever.
func (q *Queue) endAlone(ctx context.Context, v verdict, by string) (ok bool, err error) {
	for {
		err = q.inTx(ctx, func(tx *sql.Tx) (err error) {
			ok, err = q.endReservation(ctx, tx, v, by)
			return err
		})
		if v.lean || !q.d.tooLarge(err) {
			return ok, err
		}
		v.lean = true
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// payload is the row's payload as it goes on.
func (v *verdict) payload() string {
	if v.envelope.JobType == "" {
		return string(v.row.payload)
	}
	encoded, err := v.envelope.Encode()
	if err != nil { // it was decoded from one
		return string(v.row.payload)
	}
	return string(encoded)
}

const insertFailed = "INSERT INTO {failed} (job, queue, job_id, job_type, payload, error_class, error, reason, history, failed_by, " +
	"attempts, crashes, replays, priority, max_attempts, backoff_ms, timeout_ms, unique_key, created_at, failed_at) "

// letter is what is kept of a dead job. What is no envelope has the id of its row.
func (v *verdict) letter() job.DeadLetter {
	letter := job.NewDeadLetter(v.row.queue, v.envelope, &job.DeadError{Reason: v.reason, Err: v.err})
	if letter.Job.JobID == "" {
		letter.Job.JobID = "db_" + v.row.idText()
	}
	return letter
}

// bury stores the dead letter of a row.
func (q *Queue) bury(ctx context.Context, tx *sql.Tx, v verdict, by string) error {
	letter := v.letter()
	v.envelope = letter.Job
	history, err := json.Marshal(letter.Attempts)
	if err != nil {
		return fmt.Errorf("queue: history of %s: %w", letter.Job.JobID, err)
	}
	crashes := v.row.crashes + number(v.crashed)
	_, err = q.exec(ctx, tx, insertFailed+"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now})",
		v.row.id, v.row.queue, storable(letter.Job.JobID), storable(letter.Job.JobType), v.payload(), storable(job.ErrorClass(v.err)),
		storable(letter.Error), string(letter.Reason),
		string(history), by, v.row.attempts-number(v.giveBack), crashes, letter.Replays, v.row.priority, v.row.maxAttempts, v.row.backoffMS,
		v.row.timeoutMS, v.row.uniqueKey, v.row.createdAt)
	return err
}

// buryLean stores the dead letter of a row with the payload that it has there, and of its errors the last one.
func (q *Queue) buryLean(ctx context.Context, tx *sql.Tx, v verdict, by, cond string, condArgs []any) error {
	letter := v.letter()
	history, err := json.Marshal(letter.Attempts[len(letter.Attempts)-1:])
	if err != nil {
		return fmt.Errorf("queue: history of %s: %w", letter.Job.JobID, err)
	}
	// Numbers are added to columns, which gives them a type.
	_, err = q.exec(ctx, tx, insertFailed+"SELECT id, queue, ?, ?, payload, ?, ?, ?, ?, ?, attempts - ?, crashes + ?, crashes - crashes + ?, priority, max_attempts, backoff_ms, "+
		"timeout_ms, unique_key, created_at, {now} FROM {jobs} WHERE "+cond,
		append([]any{storable(letter.Job.JobID), storable(letter.Job.JobType), storable(job.ErrorClass(v.err)), storable(letter.Error),
			string(letter.Reason), string(history), by, number(v.giveBack), number(v.crashed), letter.Replays}, condArgs...)...)
	return err
}

// maxText is the length in bytes of a text that MySQL's TEXT takes.
const maxText = 60_000

// storable is a text as every database takes it: cut, in UTF-8, without NUL. A dead letter that could not be stored
// would keep its job running for ever.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD"), "\x00", "\uFFFD")
	if cut := maxText; len(text) > cut {
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return text
}

// afterLapse is what becomes of a row whose owner let the lease lapse.
func afterLapse(r row, policy job.RetryPolicy) verdict {
	v := verdict{row: r, outcome: job.Requeued, crashed: true, lapsed: true, reason: job.ReasonCrashed, dueAt: r.availableAt,
		err: fmt.Errorf("lease lapsed; it was held by %s", owner(r.token.String))}
	if r.crashes > 0 { // the first lapse may be bad luck
		v.dueAt = r.leaseUntil.Int64 + backoff(r, policy, max(r.attempts, 1)).Milliseconds()
	}
	e, err := r.envelope()
	if err != nil {
		v.outcome, v.reason, v.err = job.Dead, job.ReasonDecode, err
		return v
	}
	v.envelope = e
	switch {
	case r.crashes+1 >= maxCrashes:
		v.outcome, v.err = job.Dead, fmt.Errorf("crashed %d workers; %w", r.crashes+1, v.err)
	case r.attempts >= attemptLimit(e, policy):
		v.outcome, v.reason, v.err = job.Dead, job.ReasonExhausted, fmt.Errorf("all %d attempts are used up; %w", r.attempts, v.err)
	default:
		at := r.leaseUntil.Int64 / 1000
		v.envelope = job.WithFailure(e, job.AttemptError{Attempt: r.attempts, At: at, Reason: v.reason, Error: v.err.Error()}, job.MaxFailures)
	}
	return v
}

// attemptLimit is the smaller of the job's and the worker's; Unlimited is more than any count.
func attemptLimit(e job.Envelope, policy job.RetryPolicy) int {
	limit := max(e.MaxAttempts, 1)
	if policy != (job.RetryPolicy{}) {
		limit = min(limit, max(policy.MaxAttempts, 1))
	}
	return limit
}

// backoff is the wait after an attempt of a job: its row's, else the policy's.
func backoff(r row, policy job.RetryPolicy, attempt int) time.Duration {
	return rowPolicy(r, policy).Delay(attempt)
}

func rowPolicy(r row, policy job.RetryPolicy) job.RetryPolicy {
	if r.backoffMS.Valid {
		return policy.Fixed(time.Duration(r.backoffMS.Int64) * time.Millisecond)
	}
	return policy
}
