package queue

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
)

// The kinds of rows in the control table. Workers read them at every look for jobs, at least once a second.
const (
	kindPause   = "pause"   // name: the queue, "" is every queue
	kindRestart = "restart" // name: ""; at: grows with every Restart
	kindCancel  = "cancel"  // name: the id of a job that was taken away from its worker
)

// Pause keeps workers from taking jobs of a queue, "" is every queue, within a second; what runs goes on. It holds,
// whoever comes and goes, until Resume.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	if q.sync != nil {
		return ErrSync
	}
	if err := checkQueues(queue); err != nil {
		return err
	}
	return q.setControl(ctx, q.db, kindPause, queue)
}

// Resume ends the Pause of the same queue. What was not paused is no error.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	if q.sync != nil {
		return ErrSync
	}
	if err := checkQueues(queue); err != nil {
		return err
	}
	_, err := q.exec(ctx, q.db, "DELETE FROM {control} WHERE kind = ? AND name = ?", kindPause, queue)
	q.bell.ring()
	return err
}

// Paused are the paused queues; "" among them is every queue.
func (q *Queue) Paused(ctx context.Context) ([]string, error) {
	if q.sync != nil {
		return nil, nil
	}
	c, err := q.readControl(ctx)
	var paused []string
	for name := range c.paused {
		paused = append(paused, name)
	}
	return paused, err
}

// Restart makes every worker of the database that runs now finish what it has and return ErrRestart, within a second
// after its last look. Who starts them again gets them with the new code.
func (q *Queue) Restart(ctx context.Context) error {
	if q.sync != nil {
		return ErrSync
	}
	return q.setControl(ctx, q.db, kindRestart, "")
}

// setControl writes a row whose time is later than it was.
func (q *Queue) setControl(ctx context.Context, x sqlRunner, kind, name string) error {
	_, err := q.exec(ctx, x, "INSERT INTO {control} (kind, name, at) VALUES (?, ?, {now})"+
		q.d.upsert("kind, name", "at = CASE WHEN {control}.at >= {now} THEN {control}.at + 1 ELSE {now} END"), kind, name)
	return err
}

// Cancel removes a job. One that runs is taken away from its worker: whatever it answers counts for nothing, and
// its handler's context ends with ErrCancelled within a second or so. ErrNotFound: there is no such live job.
func (q *Queue) Cancel(ctx context.Context, id string) error {
	if q.sync != nil {
		return ErrSync
	}
	n, err := rowID(id)
	if err != nil {
		return err
	}
	return q.inTx(ctx, func(tx *sql.Tx) error {
		gone, err := q.change(ctx, tx, "DELETE FROM {jobs}", nil, "id = ? AND reserved_token IS NULL", []any{n})
		if err != nil || len(gone) > 0 {
			return err
		}
		gone, err = q.change(ctx, tx, "DELETE FROM {jobs}", nil, "id = ?", []any{n})
		if err == nil && len(gone) == 0 {
			err = fmt.Errorf("%w: job %s", ErrNotFound, id)
		}
		if err != nil {
			return err
		}
		return q.setControl(ctx, tx, kindCancel, strconv.FormatInt(n, 10))
	})
}

// control is what the control table says.
type control struct {
	paused    map[string]bool
	restart   int64
	cancelled []int64
}

func (c control) pauses(queue string) bool { return c.paused[""] || c.paused[queue] }

func (q *Queue) readControl(ctx context.Context) (c control, err error) {
	c.paused = map[string]bool{}
	err = q.each(ctx, q.read, "SELECT kind, name, at FROM {control}", nil, func(rows *sql.Rows) error {
		var kind, name string
		var at int64
		if err := rows.Scan(&kind, &name, &at); err != nil {
			return err
		}
		switch kind {
		case kindPause:
			c.paused[name] = true
		case kindRestart:
			c.restart = at
		case kindCancel:
			if id, err := strconv.ParseInt(name, 10, 64); err == nil {
				c.cancelled = append(c.cancelled, id)
			}
		}
		return nil
	})
	return c, err
}

// keepEnded is how long in ms what has ended stays: a cancellation for the job's worker to read, and the rows of the
// Store.
const keepEnded = 10 * 60 * 1000

// sweepControl removes cancellations that every worker has read.
func (q *Queue) sweepControl(ctx context.Context) error {
	_, err := q.exec(ctx, q.db, "DELETE FROM {control} WHERE kind = ? AND at < {now} - ?", kindCancel, keepEnded)
	return err
}
