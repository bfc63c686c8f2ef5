package sqlqueue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

// In makes a push a part of the transaction tx: no worker sees the job before the commit, and a
// rollback leaves nothing.
//
//	id, err := q.Push(ctx, SendWelcomeMail{UserID: 7}, sqlqueue.In(tx))
//
// With SQLite use nothing else of the queue until the transaction has ended: it has the only
// connection that writes.
func In(tx *sql.Tx) backend.PushOption { return func(o *backend.PushOptions) { o.Tx = tx } }

// Push implements backend.Backend. It stores all messages in one transaction, or none.
func (s *Store) Push(ctx context.Context, messages []backend.Message) []backend.Pushed {
	return s.push(ctx, nil, messages)
}

// PushTx implements backend.TxPusher for a *sql.Tx.
func (s *Store) PushTx(ctx context.Context, tx any, messages []backend.Message) []backend.Pushed {
	in, _ := tx.(*sql.Tx)
	if in == nil {
		return refused(len(messages), &backend.ConfigError{Option: "tx", Value: tx, Rule: "must be a *sql.Tx and not nil"})
	}
	return s.push(ctx, in, messages)
}

func (s *Store) push(ctx context.Context, tx *sql.Tx, messages []backend.Message) []backend.Pushed {
	if len(messages) == 1 {
		id, err := s.pushOne(ctx, tx, &messages[0])
		if err != nil {
			err = fmt.Errorf("queue: push %s: %w", messages[0].Envelope.JobType, err)
		}
		return []backend.Pushed{{ID: id, Err: err}}
	}
	ids, err := s.pushAll(ctx, tx, messages)
	if err != nil {
		return refused(len(messages), fmt.Errorf("queue: push %d jobs: %w", len(messages), err))
	}
	pushed := make([]backend.Pushed, len(ids))
	for i, id := range ids {
		pushed[i].ID = id
	}
	return pushed
}

func refused(n int, err error) []backend.Pushed {
	pushed := make([]backend.Pushed, n)
	for i := range pushed {
		pushed[i].Err = err
	}
	return pushed
}

func (s *Store) pushOne(ctx context.Context, tx *sql.Tx, m *backend.Message) (id string, err error) {
	switch {
	case m.UniqueKey != "":
		return s.pushUnique(ctx, tx, m)
	case tx != nil:
		return one(s.insert(ctx, tx, m))
	default:
		return one(s.insert(ctx, s.db, m))
	}
}

func (s *Store) pushAll(ctx context.Context, tx *sql.Tx, messages []backend.Message) (ids []string, err error) {
	for _, m := range messages {
		if m.UniqueKey != "" {
			return nil, &backend.ConfigError{Option: "Unique", Value: m.UniqueKey, Rule: "cannot hold for many jobs"}
		}
	}
	if tx != nil {
		return s.insertChunks(ctx, tx, messages)
	}
	err = s.inTx(ctx, func(tx *sql.Tx) (err error) {
		ids, err = s.insertChunks(ctx, tx, messages)
		return err
	})
	return ids, err
}

const (
	insertHead = "INSERT INTO {jobs} (queue, payload, priority, attempts, max_attempts, available_at, unique_key, " +
		"backoff_ms, timeout_ms, created_at) VALUES "
	insertRow = "(?, ?, ?, ?, ?, {now} + ?, ?, ?, ?, {now})"
	chunkRow  = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	chunk     = 500 // rows in one INSERT: 10 parameters each are within every database's limit
)

// dueArg is the index of the delay among a message's arguments.
const dueArg = 5

// insertArgs returns the parameters of insertRow.
func insertArgs(m *backend.Message) []any {
	return []any{m.Queue, string(m.Payload), m.Priority, m.Attempts, maxAttempts(m), delayMS(m.Delay),
		sql.NullString{String: m.UniqueKey, Valid: m.UniqueKey != ""}, backoffMS(m), timeoutMS(m)}
}

func maxAttempts(m *backend.Message) (n sql.NullInt64) {
	if m.MaxAttempts != 0 {
		n = sql.NullInt64{Int64: int64(m.MaxAttempts), Valid: true}
	}
	return n
}

func backoffMS(m *backend.Message) (ms sql.NullInt64) {
	if m.Backoff != nil {
		ms = sql.NullInt64{Int64: m.Backoff.Milliseconds(), Valid: true}
	}
	return ms
}

// timeoutMS rounds a limit below a millisecond up, since 0 means the worker's limit.
func timeoutMS(m *backend.Message) (ms sql.NullInt64) {
	switch {
	case m.Timeout == 0:
	case m.Timeout < 0:
		ms = sql.NullInt64{Int64: -1, Valid: true}
	default:
		ms = sql.NullInt64{Int64: max(m.Timeout.Milliseconds(), 1), Valid: true}
	}
	return ms
}

// delayMS rounds up, so that a job never comes before its time.
func delayMS(d time.Duration) int64 {
	d = max(d, 0)
	if d > math.MaxInt64-time.Millisecond {
		return int64(math.MaxInt64 / time.Millisecond)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func (s *Store) insertChunks(ctx context.Context, tx *sql.Tx, messages []backend.Message) (ids []string, err error) {
	now, err := s.now(ctx, tx)
	if err != nil {
		return nil, err
	}
	limit, err := s.chunkBytes(ctx, tx)
	if err != nil {
		return nil, err
	}
	for len(messages) > 0 {
		n := alike(messages, limit)
		statement, args, err := s.d.insertMany(messages[:n], now)
		if err != nil {
			return nil, err
		}
		some, err := s.insertRows(ctx, tx, statement, args, messages[0].Queue, n)
		if err != nil {
			return nil, err
		}
		ids, messages = append(ids, some...), messages[n:]
	}
	return ids, nil
}

// alike returns how many messages, from the first on, one INSERT can store. They agree in the
// columns for which manyJSON has one value, and their payloads have limit bytes together.
func alike(messages []backend.Message, limit int) (n int) {
	const others = 512 // bytes of the columns beside the payload, at most
	first := &messages[0]
	size := len(first.Payload) + others
	for n = 1; n < min(chunk, len(messages)); n++ {
		m := &messages[n]
		size += len(m.Payload) + others
		if size > limit || m.Queue != first.Queue || m.Priority != first.Priority || m.Attempts != first.Attempts ||
			m.Delay != first.Delay || backoffMS(m) != backoffMS(first) {
			break
		}
	}
	return n
}

// chunkBytes returns how many bytes of payloads one INSERT may have. Escaped they are up to twice as
// long.
func (s *Store) chunkBytes(ctx context.Context, x runner) (n int, err error) {
	n = 128 << 20
	if limit := s.d.statementLimit(); limit != "" {
		err = s.each(ctx, x, limit, nil, func(rows *sql.Rows) error { return rows.Scan(&n) })
	}
	return n / 2, err
}

// manyValues is insertMany with ten parameters a row.
func manyValues(messages []backend.Message, now int64) (statement string, args []any, err error) {
	args = make([]any, 0, 10*len(messages))
	for i := range messages {
		values := insertArgs(&messages[i])
		values[dueArg] = now + values[dueArg].(int64)
		args = append(append(args, values...), now)
	}
	return insertHead + chunkRow + strings.Repeat(", "+chunkRow, len(messages)-1), args, nil
}

// manyJSON is insertMany with one parameter, a JSON text, for the columns that differ between the
// jobs. rows is SQL that makes rows of it, with the columns p (payload), t (tries) and l (time
// limit).
func manyJSON(messages []backend.Message, now int64, rows string) (statement string, args []any, err error) {
	type differs struct {
		Payload string `json:"p"`
		Tries   *int64 `json:"t,omitempty"`
		Timeout *int64 `json:"l,omitempty"`
	}
	list := make([]differs, len(messages))
	for i := range messages {
		m := &messages[i]
		list[i] = differs{string(m.Payload), orNil(maxAttempts(m)), orNil(timeoutMS(m))}
	}
	text, err := json.Marshal(list)
	m := &messages[0]
	return "INSERT INTO {jobs} (queue, payload, priority, attempts, max_attempts, available_at, backoff_ms, timeout_ms, " +
			"created_at) " +
			"SELECT ?, p, ?, ?, t, ?, ?, l, ? FROM " + rows,
		[]any{m.Queue, m.Priority, m.Attempts, now + delayMS(m.Delay), backoffMS(m), now, string(text)}, err
}

func orNil(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

// insert stores a message. It returns no id and no error if the unique key is taken.
func (s *Store) insert(ctx context.Context, x runner, m *backend.Message) (ids []string, err error) {
	statement := insertHead + insertRow
	if m.UniqueKey != "" {
		statement += s.d.skipConflict()
	}
	return s.insertRows(ctx, x, statement, insertArgs(m), m.Queue, 1)
}

func (s *Store) insertRows(
	ctx context.Context, x runner, statement string, args []any, queue string, n int,
) (ids []string, err error) {
	if !s.d.returning() {
		return s.insertCounting(ctx, x, statement, args, n)
	}
	statement += " RETURNING id"
	var id, notified int64
	into := []any{&id}
	turn := queue
	if _, inTx := x.(*sql.Tx); inTx { // it may be long or roll back, so pushes outside are counted apart
		turn += "\x00" // no queue's name has it
	}
	announce := s.channel != "" && s.notify.allow(turn, notifyEvery)
	if announce { // in the same statement: another one would be another commit to wait for
		statement += ", (SELECT COUNT(*) FROM pg_notify(?, ?))"
		args, into = append(args, s.channel, queue), append(into, &notified)
	}
	err = s.each(ctx, x, statement, args, func(rows *sql.Rows) error {
		err := rows.Scan(into...)
		ids = append(ids, strconv.FormatInt(id, 10))
		return err
	})
	if announce && len(ids) == 0 { // nothing was announced
		s.notify.forget(turn)
	}
	return ids, err
}

// insertCounting is insertRows for a database that returns only the first id.
func (s *Store) insertCounting(
	ctx context.Context, x runner, statement string, args []any, n int,
) (ids []string, err error) {
	step := int64(1)
	if n > 1 {
		err = s.each(ctx, x, s.d.nextID(), nil, func(rows *sql.Rows) error { return rows.Scan(&step) })
		if err != nil {
			return nil, err
		}
	}
	result, err := s.exec(ctx, x, statement, args...)
	if s.d.duplicate(err) {
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

// A debounce lets a key through once in an interval.
type debounce struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (d *debounce) allow(key string, every time.Duration) bool {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.last[key]) < every {
		return false
	}
	if d.last == nil {
		d.last = map[string]time.Time{}
	}
	d.last[key] = now
	return true
}

// forget undoes the last allow of a key.
func (d *debounce) forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, key)
}

// errRaced says that a unique key was taken and free again at each try.
var errRaced = errors.New("queue: unique key changed hands too often")

// pushUnique pushes a job with a unique key. The unique index decides, so exactly one of many
// pushes at the same time gets the key.
func (s *Store) pushUnique(ctx context.Context, tx *sql.Tx, m *backend.Message) (id string, err error) {
	if tx != nil {
		return s.pushUniqueIn(ctx, tx, m)
	}
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		id, err = s.pushUniqueIn(ctx, tx, m)
		return err
	})
	return id, err
}

func (s *Store) pushUniqueIn(ctx context.Context, tx *sql.Tx, m *backend.Message) (id string, err error) {
	const rounds = 5
	for range rounds {
		if m.OnTaken == backend.TakenReplace {
			if _, err := s.exec(ctx, tx, "DELETE FROM {jobs} WHERE unique_key = ? AND reserved_token IS NULL",
				m.UniqueKey); err != nil {
				return "", err
			}
		}
		ids, err := s.insert(ctx, tx, m)
		if err != nil {
			return "", err
		}
		if len(ids) == 1 {
			return ids[0], nil
		}
		holder, err := s.keyHolder(ctx, tx, m.UniqueKey)
		switch {
		case err != nil:
			return "", err
		case holder == "":
			continue // it finished meanwhile
		case m.OnTaken == backend.TakenExisting:
			return holder, nil
		default:
			return "", &backend.DuplicateError{Key: m.UniqueKey, Existing: holder}
		}
	}
	return "", errRaced
}

func (s *Store) keyHolder(ctx context.Context, x runner, key string) (id string, err error) {
	err = s.each(ctx, x, "SELECT id FROM {jobs} WHERE unique_key = ?", []any{key}, func(rows *sql.Rows) error {
		return rows.Scan(&id)
	})
	return id, err
}
