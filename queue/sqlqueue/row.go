package sqlqueue

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// A row is a row of the table of jobs. It is the receipt of its delivery.
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

// scanRow reads rowColumns and the columns that were selected after them.
func scanRow(rows *sql.Rows, more ...any) (*row, error) {
	r := &row{}
	err := rows.Scan(append([]any{&r.id, &r.queue, &r.payload, &r.priority, &r.attempts, &r.maxAttempts, &r.crashes,
		&r.availableAt, &r.token, &r.reservedAt, &r.leaseUntil, &r.uniqueKey, &r.backoffMS, &r.timeoutMS,
		&r.createdAt}, more...)...)
	return r, err
}

func (r *row) idText() string { return strconv.FormatInt(r.id, 10) }

// delivery returns the row as package queue gets it.
func (r *row) delivery() backend.Delivery {
	d := backend.Delivery{
		ID: r.idText(), Queue: r.queue, UniqueKey: r.uniqueKey.String, Payload: r.payload, Priority: r.priority,
		Attempts: r.attempts, Crashes: r.crashes, Backoff: nullDuration(r.backoffMS),
		CreatedAt: time.UnixMilli(r.createdAt), AvailableAt: time.UnixMilli(r.availableAt), Receipt: r,
	}
	if r.maxAttempts.Valid {
		d.MaxAttempts = int(min(max(r.maxAttempts.Int64, 1), job.Unlimited))
	}
	if r.timeoutMS.Valid {
		d.Timeout = time.Duration(r.timeoutMS.Int64) * time.Millisecond
	}
	if r.token.Valid {
		d.ReservedBy = owner(r.token.String)
		d.ReservedAt, d.LeaseUntil = time.UnixMilli(r.reservedAt.Int64), time.UnixMilli(r.leaseUntil.Int64)
	}
	return d
}

func deliveries(rows []*row) []backend.Delivery {
	if len(rows) == 0 {
		return nil
	}
	list := make([]backend.Delivery, len(rows))
	for i, r := range rows {
		list[i] = r.delivery()
	}
	return list
}

// owner returns the name of the worker in a token.
func owner(token string) string {
	name, _, _ := strings.Cut(token, ".")
	return name
}

func nullDuration(ms sql.NullInt64) *time.Duration {
	if !ms.Valid {
		return nil
	}
	d := time.Duration(ms.Int64) * time.Millisecond
	return &d
}

// byOrder compares rows by the order in which jobs are taken from the queues.
func byOrder(queues []string) func(a, b *row) int {
	return func(a, b *row) int {
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
		return 0, fmt.Errorf("%w: %q is no id of a job", backend.ErrNotFound, id)
	}
	return n, nil
}

// rowIDs returns the ids that are numbers; others cannot be ids of rows.
func rowIDs(ids []string) (numbers []int64) {
	for _, id := range ids {
		if n, err := rowID(id); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
