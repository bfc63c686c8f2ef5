package queue

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/taskd-go/task/job"
)

const maxPriority = 3

// A row is a job as the table has it.
type row struct {
	id          int64
	queue       string
	payload     []byte
	priority    int
	attempts    int
	maxAttempts sql.NullInt64
	crashes     int
	availableAt int64
	token       sql.NullString
	reservedAt  sql.NullInt64
	leaseUntil  sql.NullInt64
	uniqueKey   sql.NullString
	backoffMS   sql.NullInt64
	timeoutMS   sql.NullInt64
	createdAt   int64
}

const rowColumns = "id, queue, payload, priority, attempts, max_attempts, crashes, available_at, reserved_token, " +
	"reserved_at, lease_until, unique_key, backoff_ms, timeout_ms, created_at"

// scanRow reads rowColumns and what else was selected behind them.
func scanRow(rows *sql.Rows, more ...any) (r row, err error) {
	err = rows.Scan(append([]any{&r.id, &r.queue, &r.payload, &r.priority, &r.attempts, &r.maxAttempts, &r.crashes, &r.availableAt,
		&r.token, &r.reservedAt, &r.leaseUntil, &r.uniqueKey, &r.backoffMS, &r.timeoutMS, &r.createdAt}, more...)...)
	return r, err
}

func (r *row) idText() string { return strconv.FormatInt(r.id, 10) }

// envelope is the job that the row holds: its columns go before the envelope's members.
func (r *row) envelope() (job.Envelope, error) {
	e, err := job.Decode(r.payload)
	if err != nil {
		return e, err
	}
	if !hasID(r.payload) {
		e.JobID = "db_" + r.idText()
	}
	e.Attempt = max(r.attempts, 1)
	if r.maxAttempts.Valid {
		e.MaxAttempts = int(min(max(r.maxAttempts.Int64, 1), job.Unlimited))
	}
	return e, nil
}

// hasID reports whether the message has an id of its own. Decode would have made one up from its content, and two
// rows of one content are two jobs.
func hasID(payload []byte) bool {
	const ours = `{"v":1,"jobId":"job_`
	if len(payload) > len(ours) && string(payload[:len(ours)]) == ours {
		return true
	}
	var members map[string]json.RawMessage
	var id string
	return json.Unmarshal(payload, &members) == nil && json.Unmarshal(members["jobId"], &id) == nil && id != ""
}

// byOrder is the order in which jobs are taken from the queues.
func byOrder(queues []string) func(a, b row) int {
	return func(a, b row) int {
		return cmp.Or(
			cmp.Compare(slices.Index(queues, a.queue), slices.Index(queues, b.queue)),
			cmp.Compare(b.priority, a.priority),
			cmp.Compare(a.availableAt, b.availableAt),
			cmp.Compare(a.id, b.id))
	}
}

func rowID(id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is no id of a job", ErrNotFound, id)
	}
	return n, nil
}

// rowIDs are the ids that can be those of rows.
func rowIDs(ids []string) (numbers []int64) {
	for _, id := range ids {
		if n, err := rowID(id); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func millis(t time.Time) int64 { return t.UnixMilli() }
