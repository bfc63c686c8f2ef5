package sqlqueue

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
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

	leaseAsRead any   // lease_until for a comparison; in SQLite it may be a float64
	fault       error // the first column that has no number where one must be
}

const rowColumns = "id, queue, payload, priority, attempts, max_attempts, crashes, available_at, reserved_token, " +
	"reserved_at, lease_until, unique_key, backoff_ms, timeout_ms, created_at"

// scanRow reads rowColumns and the columns that were selected after them.
func scanRow(rows *sql.Rows, more ...any) (*row, error) {
	r := &row{}
	var priority, attempts, crashes int64
	err := rows.Scan(append([]any{&r.id, &r.queue, &r.payload, r.number("priority", &priority),
		r.number("attempts", &attempts), r.nullNumber("max_attempts", &r.maxAttempts), r.number("crashes", &crashes),
		r.number("available_at", &r.availableAt), &r.token, r.nullNumber("reserved_at", &r.reservedAt), &r.leaseAsRead,
		&r.uniqueKey, r.nullNumber("backoff_ms", &r.backoffMS), r.nullNumber("timeout_ms", &r.timeoutMS),
		r.number("created_at", &r.createdAt)}, more...)...)
	if err == nil {
		err = r.nullNumber("lease_until", &r.leaseUntil).Scan(r.leaseAsRead)
		if _, isReal := r.leaseAsRead.(float64); !isReal {
			r.leaseAsRead = r.leaseUntil.Int64
		}
	}
	r.priority, r.attempts, r.crashes = int(priority), count(attempts), count(crashes)
	return r, err
}

func (r *row) idText() string { return strconv.FormatInt(r.id, 10) }

// delivery returns the row as package queue gets it.
func (r *row) delivery() backend.Delivery {
	d := backend.Delivery{
		ID: r.idText(), Queue: r.queue, UniqueKey: r.uniqueKey.String, Payload: r.payload, Priority: r.priority,
		Attempts: r.attempts, Crashes: r.crashes, Backoff: nullDuration(r.backoffMS),
		CreatedAt: time.UnixMilli(r.createdAt), AvailableAt: time.UnixMilli(r.availableAt), Fault: r.fault, Receipt: r,
	}
	if r.maxAttempts.Valid {
		d.MaxAttempts = int(min(max(r.maxAttempts.Int64, 1), job.Unlimited))
	}
	if r.timeoutMS.Valid {
		d.Timeout = milliseconds(r.timeoutMS.Int64)
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
	d := milliseconds(ms.Int64)
	return &d
}

// milliseconds returns the nearest Duration.
func milliseconds(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
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

// A number reads a column of numbers. In SQLite another program may have stored anything there; that
// must harm no row but its own, so Scan never fails: it notes the fault, and reads the nearest number.
type number struct {
	row    *row
	column string
	into   *int64
	valid  *bool // nil: the column must not be NULL
}

func (r *row) number(column string, into *int64) number { return number{r, column, into, nil} }

func (r *row) nullNumber(column string, into *sql.NullInt64) number {
	return number{r, column, &into.Int64, &into.Valid}
}

// Scan implements sql.Scanner.
func (n number) Scan(v any) error {
	value, whole := asNumber(v)
	*n.into = value
	if n.valid != nil {
		*n.valid = v != nil
	}
	if !whole && (v != nil || n.valid == nil) && n.row.fault == nil {
		n.row.fault = fmt.Errorf("column %s must have a whole number, but has %.100q", n.column, fmt.Sprint(v))
	}
	return nil
}

// asNumber returns the nearest whole number to a value, and whether the value is one.
func asNumber(v any) (n int64, whole bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if v > -math.MaxInt64 && v < math.MaxInt64 {
			return int64(v), false
		}
		if v > 0 {
			return math.MaxInt64, false
		}
		return math.MinInt64, false
	case []byte: // as some drivers send numbers
		n, err := strconv.ParseInt(string(v), 10, 64)
		return n, err == nil
	}
	return 0, false
}
