package queue

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// MaxCount is how far Counts counts the jobs of one state: a number of MaxCount means that there are so many or more.
// It bounds what a look at a deep queue costs.
const MaxCount = 10_000

// Counts are the jobs of a queue by state, each up to MaxCount. Dead letters are none of them.
type Counts struct {
	Ready    int64 `json:"ready"`    // due
	Delayed  int64 `json:"delayed"`  // not due yet
	Reserved int64 `json:"reserved"` // taken by a worker, or left by one that is gone
}

// Size is all of them.
func (c Counts) Size() int64 { return c.Ready + c.Delayed + c.Reserved }

// AtLeast reports whether a state reached MaxCount, so that there may be more jobs than Counts says.
func (c Counts) AtLeast() bool { return max(c.Ready, c.Delayed, c.Reserved) >= MaxCount }

// Counts counts the jobs of a queue; "" is every queue. A state of which there are MaxCount or more is MaxCount, and
// what it costs does not grow beyond that.
func (q *Queue) Counts(ctx context.Context, queue string) (c Counts, err error) {
	if q.sync != nil {
		return c, nil
	}
	now, err := q.now(ctx, q.read) // one for all, so that no job is between two
	if err != nil {
		return Counts{}, err
	}
	if err := q.countFree(ctx, queue, now, &c); err != nil {
		return Counts{}, err
	}
	cond, args := "", []any{}
	if queue != "" {
		cond, args = " AND queue = ?", []any{queue}
	}
	// After the others: a job that is taken meanwhile is counted twice rather than not at all.
	reserved := "SELECT COUNT(*) FROM (SELECT 1 FROM {jobs} WHERE reserved_token IS NOT NULL AND lease_until IS NOT NULL" + cond + " ORDER BY lease_until LIMIT ?) c"
	err = q.each(ctx, q.read, reserved, append(args, MaxCount), func(rows *sql.Rows) error { return rows.Scan(&c.Reserved) })
	return c, err
}

// countFree adds the jobs of a queue, or of every queue, that are not reserved.
func (q *Queue) countFree(ctx context.Context, queue string, now int64, c *Counts) error {
	if queue != "" {
		return q.countQueue(ctx, queue, now, c)
	}
	for min(c.Ready, c.Delayed) < MaxCount {
		next, found, err := q.nextQueue(ctx, queue)
		if err != nil || !found {
			return err
		}
		if err := q.countQueue(ctx, next, now, c); err != nil {
			return err
		}
		queue = next
	}
	return nil
}

// nextQueue is the first queue after one, by name, that has a job which is not reserved.
func (q *Queue) nextQueue(ctx context.Context, after string) (name string, found bool, err error) {
	statement := "SELECT queue FROM {jobs} WHERE reserved_token IS NULL AND queue > ? ORDER BY queue LIMIT 1"
	err = q.each(ctx, q.read, statement, []any{after}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&name)
	})
	return name, found, err
}

// countQueue adds the jobs of one queue that are not reserved.
func (q *Queue) countQueue(ctx context.Context, queue string, now int64, c *Counts) error {
	var args []any
	for range maxPriority + 1 {
		args = append(args, queue, now, MaxCount-c.Ready, queue, now, MaxCount-c.Delayed)
	}
	err := q.each(ctx, q.read, freeCounts, args, func(rows *sql.Rows) error {
		var delayed bool
		var n int64
		err := rows.Scan(&delayed, &n)
		if delayed {
			c.Delayed += n
		} else {
			c.Ready += n
		}
		return err
	})
	c.Ready, c.Delayed = min(c.Ready, MaxCount), min(c.Delayed, MaxCount)
	return err
}

// freeCounts counts each level of a queue in a range of the claim's index. For each level it takes the queue, the time
// and the limit of the due rows, and then those of the others.
var freeCounts = func() string {
	var counts []string
	for p := range maxPriority + 1 {
		level := " FROM {jobs} WHERE queue = ? AND priority = " + strconv.Itoa(p) + " AND reserved_token IS NULL AND available_at "
		for delayed, comparison := range []string{"<=", ">"} {
			counts = append(counts, "SELECT "+strconv.Itoa(delayed)+", COUNT(*) FROM (SELECT 1"+level+comparison+" ? LIMIT ?) c"+strconv.Itoa(delayed)+strconv.Itoa(p))
		}
	}
	return strings.Join(counts, " UNION ALL ")
}()

// Size is the number of jobs of a queue, whatever their state, each state up to MaxCount; "" is every queue.
func (q *Queue) Size(ctx context.Context, queue string) (int64, error) {
	c, err := q.Counts(ctx, queue)
	return c.Size(), err
}
