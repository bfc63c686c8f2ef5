package queue

import (
	"context"
	"database/sql"
)

// Counts are the jobs of a queue by state. Dead letters are none of them.
type Counts struct {
	Ready    int64 `json:"ready"`    // due
	Delayed  int64 `json:"delayed"`  // not due yet
	Reserved int64 `json:"reserved"` // taken by a worker, or left by one that is gone
}

// Size is all of them.
func (c Counts) Size() int64 { return c.Ready + c.Delayed + c.Reserved }

// Counts counts the jobs of a queue; "" is every queue.
func (q *Queue) Counts(ctx context.Context, queue string) (c Counts, err error) {
	if q.sync != nil {
		return c, nil
	}
	and, args := "", []any{}
	if queue != "" {
		and, args = " AND queue = ?", []any{queue}
	}
	for _, part := range []struct {
		cond string
		into *int64
	}{
		{"reserved_token IS NULL AND available_at <= {now}", &c.Ready},
		{"reserved_token IS NULL AND available_at > {now}", &c.Delayed},
		{"reserved_token IS NOT NULL", &c.Reserved},
	} {
		err = q.each(ctx, q.read, "SELECT COUNT(*) FROM {jobs} WHERE "+part.cond+and, args, func(rows *sql.Rows) error {
			return rows.Scan(part.into)
		})
		if err != nil {
			return Counts{}, err
		}
	}
	return c, nil
}

// Size is the number of jobs of a queue, whatever their state; "" is every queue.
func (q *Queue) Size(ctx context.Context, queue string) (int64, error) {
	c, err := q.Counts(ctx, queue)
	return c.Size(), err
}

// clearChunk bounds how long one statement of Clear or Prune holds its locks.
const clearChunk = 1000

// Clear removes the jobs of a queue ("" is every queue) that no worker has, and says how many those were. Dead letters
// stay.
func (q *Queue) Clear(ctx context.Context, queue string) (n int64, err error) {
	if q.sync != nil {
		return 0, nil
	}
	cond, args := "reserved_token IS NULL", []any{}
	if queue != "" {
		cond, args = "queue = ? AND "+cond, []any{queue}
	}
	return q.deleteInChunks(ctx, "{jobs}", cond, args)
}

// deleteInChunks deletes the rows of a condition, the first id first.
func (q *Queue) deleteInChunks(ctx context.Context, table, cond string, args []any) (n int64, err error) {
	statement := "DELETE FROM " + table + " WHERE id IN (SELECT id FROM (SELECT id FROM " + table + " WHERE " + cond +
		" ORDER BY id LIMIT ?) c) AND " + cond
	args = append(append(append([]any{}, args...), clearChunk), args...)
	for {
		var deleted int64
		err := q.inTx(ctx, func(tx *sql.Tx) error {
			result, err := q.exec(ctx, tx, statement, args...)
			if err != nil {
				return err
			}
			deleted, err = result.RowsAffected()
			return err
		})
		n += deleted
		if err != nil || deleted == 0 {
			return n, err
		}
	}
}
