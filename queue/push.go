package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/taskd-go/task/job"
)

// Push stores a job and returns the id of its row, a number. With the sync driver it runs the job instead; see NewSync.
func (q *Queue) Push(ctx context.Context, j Job, opts ...PushOption) (id string, err error) {
	return q.pushJob(ctx, nil, j, opts)
}

// PushTx is Push as a part of the caller's transaction: no worker sees the job before the commit, and a rollback
// leaves nothing. With SQLite the Tx forms are all that may be used until the transaction has ended: it has the one
// connection that writes.
func (q *Queue) PushTx(ctx context.Context, tx *sql.Tx, j Job, opts ...PushOption) (id string, err error) {
	if err := q.checkTx(tx); err != nil {
		return "", err
	}
	return q.pushJob(ctx, tx, j, opts)
}

// PushEnvelope is Push for an envelope of any type. Attempts that it has had, by its Attempt, are counted.
func (q *Queue) PushEnvelope(ctx context.Context, e job.Envelope, opts ...PushOption) (id string, err error) {
	return q.pushEnvelope(ctx, nil, e, opts)
}

// PushEnvelopeTx is PushEnvelope as a part of the caller's transaction.
func (q *Queue) PushEnvelopeTx(ctx context.Context, tx *sql.Tx, e job.Envelope, opts ...PushOption) (id string, err error) {
	if err := q.checkTx(tx); err != nil {
		return "", err
	}
	return q.pushEnvelope(ctx, tx, e, opts)
}

// PushMany stores all the jobs or, with an error, none, and returns their ids in order. Unique must not be among its
// options, since they hold for each job.
func (q *Queue) PushMany(ctx context.Context, js []Job, opts ...PushOption) (ids []string, err error) {
	return q.pushMany(ctx, nil, js, opts)
}

// PushManyTx is PushMany as a part of the caller's transaction.
func (q *Queue) PushManyTx(ctx context.Context, tx *sql.Tx, js []Job, opts ...PushOption) (ids []string, err error) {
	if err := q.checkTx(tx); err != nil {
		return nil, err
	}
	return q.pushMany(ctx, tx, js, opts)
}

// checkTx refuses to push outside a transaction who asked for one. The sync driver does not look at it.
func (q *Queue) checkTx(tx *sql.Tx) error {
	if tx == nil && q.sync == nil {
		return &ConfigError{"tx", nil, "must not be nil"}
	}
	return nil
}

func (q *Queue) pushJob(ctx context.Context, tx *sql.Tx, j Job, opts []PushOption) (string, error) {
	e, opts, err := q.fromJob(j, opts)
	if err != nil {
		return "", err
	}
	return q.pushEnvelope(ctx, tx, e, opts)
}

func (q *Queue) pushEnvelope(ctx context.Context, tx *sql.Tx, e job.Envelope, opts []PushOption) (id string, err error) {
	p, err := q.newPush(e, opts)
	if err != nil {
		return "", err
	}
	if q.sync != nil {
		return e.JobID, q.sync.run(ctx, p)
	}
	switch {
	case p.uniqueKey != "":
		id, err = q.pushUnique(ctx, tx, p)
	case tx != nil:
		id, err = one(q.insert(ctx, tx, p))
	default:
		id, err = one(q.insert(ctx, q.db, p))
	}
	if err != nil {
		return "", fmt.Errorf("queue: push %s: %w", e.JobType, err)
	}
	q.pushed(tx)
	return id, nil
}

func (q *Queue) pushMany(ctx context.Context, tx *sql.Tx, js []Job, opts []PushOption) ([]string, error) {
	pushes := make([]*push, len(js))
	for i, j := range js {
		e, opts, err := q.fromJob(j, opts)
		if err != nil {
			return nil, fmt.Errorf("queue: job %d of %d: %w", i, len(js), err)
		}
		if pushes[i], err = q.newPush(e, opts); err != nil {
			return nil, fmt.Errorf("queue: job %d of %d: %w", i, len(js), err)
		}
		if pushes[i].uniqueKey != "" {
			return nil, &ConfigError{"Unique", pushes[i].key, "cannot hold for many jobs"}
		}
	}
	if len(pushes) == 0 {
		return nil, nil
	}
	if q.sync != nil {
		return q.sync.runMany(ctx, pushes)
	}
	var ids []string
	insert := func(tx *sql.Tx) (err error) {
		ids, err = q.insertChunks(ctx, tx, pushes)
		return err
	}
	var err error
	if tx != nil {
		err = insert(tx)
	} else {
		err = q.inTx(ctx, insert)
	}
	if err != nil {
		return nil, fmt.Errorf("queue: push %d jobs: %w", len(pushes), err)
	}
	q.pushed(tx)
	return ids, nil
}

const (
	insertHead = "INSERT INTO {jobs} (queue, payload, priority, attempts, max_attempts, available_at, unique_key, backoff_ms, timeout_ms, created_at) VALUES "
	insertRow  = "(?, ?, ?, ?, ?, {now} + ?, ?, ?, ?, {now})"
	chunkRow   = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	chunk      = 500 // rows in one INSERT: 10 parameters each are within every database's limit
)

// dueArg is the place of the delay among a push's arguments.
const dueArg = 5

func (p *push) args() []any {
	return []any{p.queue, string(p.encoded), p.priority, p.priorAttempts, p.maxAttempts(), delayMS(p.delay),
		sql.NullString{String: p.uniqueKey, Valid: p.uniqueKey != ""}, p.backoffMS(), p.timeoutMS()}
}

func (p *push) maxAttempts() (n sql.NullInt64) {
	if p.tries != nil {
		n = sql.NullInt64{Int64: int64(p.envelope.MaxAttempts), Valid: true}
	}
	return n
}

func (p *push) backoffMS() (ms sql.NullInt64) {
	if p.backoff != nil {
		ms = sql.NullInt64{Int64: p.backoff.Milliseconds(), Valid: true}
	}
	return ms
}

// timeoutMS keeps a limit below a millisecond from meaning the worker's.
func (p *push) timeoutMS() (ms sql.NullInt64) {
	switch {
	case p.timeout == nil || *p.timeout == 0:
	case *p.timeout < 0:
		ms = sql.NullInt64{Int64: -1, Valid: true}
	default:
		ms = sql.NullInt64{Int64: max(p.timeout.Milliseconds(), 1), Valid: true}
	}
	return ms
}

func (q *Queue) insertChunks(ctx context.Context, tx *sql.Tx, pushes []*push) (ids []string, err error) {
	now, err := q.now(ctx, tx)
	if err != nil {
		return nil, err
	}
	for len(pushes) > 0 {
		n := min(chunk, len(pushes))
		statement, args, err := q.d.insertMany(pushes[:n], now)
		if err != nil {
			return nil, err
		}
		some, err := q.insertRows(ctx, tx, statement, args, pushes[0].queue, n)
		if err != nil {
			return nil, err
		}
		ids, pushes = append(ids, some...), pushes[n:]
	}
	return ids, nil
}

// manyValues is insertMany with ten parameters a row.
func manyValues(pushes []*push, now int64) (statement string, args []any, err error) {
	args = make([]any, 0, 10*len(pushes))
	for _, p := range pushes {
		values := p.args()
		values[dueArg] = now + values[dueArg].(int64)
		args = append(append(args, values...), now)
	}
	return insertHead + chunkRow + strings.Repeat(", "+chunkRow, len(pushes)-1), args, nil
}

// manyJSON is insertMany with what differs between the jobs in one parameter: p, t and l of rows, which takes it. All
// else comes from options, which hold for each job.
func manyJSON(pushes []*push, now int64, rows string) (statement string, args []any, err error) {
	type differs struct {
		Payload string `json:"p"`
		Tries   *int64 `json:"t,omitempty"`
		Timeout *int64 `json:"l,omitempty"`
	}
	list := make([]differs, len(pushes))
	for i, p := range pushes {
		list[i] = differs{string(p.encoded), orNil(p.maxAttempts()), orNil(p.timeoutMS())}
	}
	text, err := json.Marshal(list)
	p := pushes[0]
	return "INSERT INTO {jobs} (queue, payload, priority, attempts, max_attempts, available_at, backoff_ms, timeout_ms, created_at) " +
			"SELECT ?, p, ?, ?, t, ?, ?, l, ? FROM " + rows,
		[]any{p.queue, p.priority, p.priorAttempts, now + delayMS(p.delay), p.backoffMS(), now, string(text)}, err
}

func orNil(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

// insert stores a push. No ids and no error: its unique key is taken.
func (q *Queue) insert(ctx context.Context, x sqlRunner, p *push) (ids []string, err error) {
	statement := insertHead + insertRow
	if p.uniqueKey != "" {
		statement += q.d.skipConflict()
	}
	return q.insertRows(ctx, x, statement, p.args(), p.queue, 1)
}

func (q *Queue) insertRows(ctx context.Context, x sqlRunner, statement string, args []any, queue string, n int) (ids []string, err error) {
	if !q.d.returning() {
		return q.insertCounting(ctx, x, statement, args, n)
	}
	statement += " RETURNING id"
	var id, told int64
	into := []any{&id}
	turn := queue
	if _, inTx := x.(*sql.Tx); inTx { // which may be long, or roll back: it does not speak for pushes outside
		turn += "\x00" // which no name has
	}
	tell := q.channel != "" && q.notify.allow(turn, notifyEvery)
	if tell { // by itself it would be one more commit to wait for
		statement += ", (SELECT COUNT(*) FROM pg_notify(?, ?))"
		args, into = append(args, q.channel, queue), append(into, &told)
	}
	err = q.each(ctx, x, statement, args, func(rows *sql.Rows) error {
		err := rows.Scan(into...)
		ids = append(ids, strconv.FormatInt(id, 10))
		return err
	})
	if tell && len(ids) == 0 { // nothing was told
		q.notify.forget(turn)
	}
	return ids, err
}

// insertCounting is insert for a database that tells the first id only.
func (q *Queue) insertCounting(ctx context.Context, x sqlRunner, statement string, args []any, n int) (ids []string, err error) {
	step := int64(1)
	if n > 1 {
		err = q.each(ctx, x, q.d.nextID(), nil, func(rows *sql.Rows) error { return rows.Scan(&step) })
		if err != nil {
			return nil, err
		}
	}
	result, err := q.exec(ctx, x, statement, args...)
	if q.d.duplicate(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first, err := result.LastInsertId()
	for i := range int64(n) {
		ids = append(ids, strconv.FormatInt(first+i*step, 10))
	}
	return ids, err
}

var errNoRow = errors.New("the database stored no row")

func one(ids []string, err error) (string, error) {
	if err == nil && len(ids) != 1 {
		err = errNoRow
	}
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

const notifyEvery = 100 * time.Millisecond

// pushed wakes the workers of this value. Those of others are told with the commit, or find the job at their next look.
func (q *Queue) pushed(tx *sql.Tx) {
	if tx == nil {
		q.bell.ring()
	}
}
