package sqlqueue

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

// A consumer implements backend.Consumer. It holds no connection.
type consumer struct {
	*Store
	session backend.Session

	from    map[level]place // where the last jobs were found
	locksAt time.Time       // when the tables of locks are swept next
}

var (
	_ backend.Consumer = (*consumer)(nil)
	_ backend.Sweeper  = (*consumer)(nil)
	_ backend.Tidier   = (*consumer)(nil)
)

// locksEvery is the time between two sweeps of the tables of locks.
const locksEvery = time.Minute

// Open implements backend.Backend. It does no I/O.
func (s *Store) Open(_ context.Context, session backend.Session) (backend.Consumer, error) {
	return &consumer{Store: s, session: session, from: map[level]place{}, locksAt: time.Now().Add(locksEvery)}, nil
}

// Receive implements backend.Consumer. It begins where it found the last jobs, since each look from
// the beginning would read the rows of finished jobs again that the database has not cleaned up. A
// row may appear before that place later, for example by a transaction that was committed late.
// Receive finds it after the next call of Lapsed, which comes once a second, or when it finds
// nothing else.
func (c *consumer) Receive(ctx context.Context, want backend.Want) ([]backend.Delivery, error) {
	look := claim{
		queues: want.Queues, limit: want.Max, lease: c.session.Lease, from: c.from,
		token: c.session.Worker + "." + strconv.FormatInt(c.claims.Add(1), 36),
	}
	rows, err := c.claim(ctx, look)
	if err == nil && len(rows) == 0 && len(c.from) > 0 {
		clear(c.from)
		rows, err = c.claim(ctx, look)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(rows) {
		c.from[level{r.queue, r.priority}] = place{r.availableAt, r.id}
	}
	return deliveries(rows), nil
}

// Extend implements backend.Consumer. It extends all leases in one transaction, so they fail
// together.
func (c *consumer) Extend(ctx context.Context, receipts []backend.Receipt) []error {
	ids, tokens := reserved(receipts)
	held, err := c.renew(ctx, ids, tokens, c.session.Lease)
	if err != nil {
		return slices.Repeat([]error{err}, len(receipts))
	}
	return lost(ids, held)
}

// lost returns ErrLost for each of ids that is not among held; nil if all are.
func lost(ids, held []int64) []error {
	if len(held) == len(ids) {
		return nil
	}
	still := set(held)
	errs := make([]error, len(ids))
	for i, id := range ids {
		if !still[id] {
			errs[i] = backend.ErrLost
		}
	}
	return errs
}

func set(ids []int64) map[int64]bool {
	m := make(map[int64]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}

// reserved returns the ids and tokens of deliveries.
func reserved(receipts []backend.Receipt) (ids []int64, tokens []string) {
	ids, tokens = make([]int64, len(receipts)), make([]string, len(receipts))
	for i, receipt := range receipts {
		r := receipt.(*row)
		ids[i], tokens[i] = r.id, r.token.String
	}
	return ids, tokens
}

// sweepChunk is how many lapsed rows one call of Lapsed returns.
const sweepChunk = backend.MaxComplete

// Lapsed implements backend.Sweeper.
func (c *consumer) Lapsed(
	ctx context.Context, keep []backend.Receipt,
) (lapsed []backend.Delivery, full bool, err error) {
	clear(c.from)
	cond, args := "reserved_token IS NOT NULL AND lease_until < {now}", []any(nil)
	if len(keep) > 0 {
		var kept string
		kept, args = c.reservations(reserved(keep))
		cond += " AND NOT (" + kept + ")"
	}
	statement := "SELECT " + rowColumns + " FROM {jobs} WHERE " + cond + " ORDER BY lease_until LIMIT " +
		strconv.Itoa(sweepChunk)
	var rows []*row
	err = c.each(ctx, c.read, statement, args, func(r *sql.Rows) error {
		row, err := scanRow(r)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return deliveries(rows), len(rows) == sweepChunk, nil
}

// Tidy implements backend.Tidier. It removes cancellations that all workers have had time to read,
// and once a minute the rows of ended locks.
func (c *consumer) Tidy(ctx context.Context, read backend.Orders) error {
	if len(read.Cancelled) > 0 {
		if err := c.sweepControl(ctx); err != nil {
			return err
		}
	}
	if time.Now().Before(c.locksAt) {
		return nil
	}
	c.locksAt = time.Now().Add(locksEvery)
	return c.sweepLocks(ctx)
}

// Close implements backend.Consumer. Receive has returned all that it reserved, so nothing is given
// back.
func (*consumer) Close(context.Context) error { return nil }
