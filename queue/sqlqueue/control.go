package sqlqueue

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/taskd-go/task/queue/backend"
)

// The kinds of rows in the control table. Workers read them about once a second.
const (
	kindPause   = "pause"   // name: the queue, "" is every queue
	kindRestart = "restart" // name: ""; at: grows with every Restart
	kindCancel  = "cancel"  // name: the id of a job that was cancelled while a worker had it
)

// Pause implements backend.Control.
func (s *Store) Pause(ctx context.Context, queue string) error {
	return s.setControl(ctx, s.db, kindPause, queue)
}

// Resume implements backend.Control.
func (s *Store) Resume(ctx context.Context, queue string) error {
	_, err := s.exec(ctx, s.db, "DELETE FROM {control} WHERE kind = ? AND name = ?", kindPause, queue)
	return err
}

// Restart implements backend.Control.
func (s *Store) Restart(ctx context.Context) error { return s.setControl(ctx, s.db, kindRestart, "") }

// setControl inserts a row, or gives it a later time than it has.
func (s *Store) setControl(ctx context.Context, x runner, kind, name string) error {
	_, err := s.exec(ctx, x, "INSERT INTO {control} (kind, name, at) VALUES (?, ?, {now})"+
		s.d.upsert("kind, name", "at = CASE WHEN {control}.at >= {now} THEN {control}.at + 1 ELSE {now} END"), kind, name)
	return err
}

// Cancel implements backend.Control.
func (s *Store) Cancel(ctx context.Context, id string) error {
	n, err := rowID(id)
	if err != nil {
		return err
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		gone, err := s.change(ctx, tx, "DELETE FROM {jobs}", nil, "id = ? AND reserved_token IS NULL", []any{n})
		if err != nil || len(gone) > 0 {
			return err
		}
		gone, err = s.change(ctx, tx, "DELETE FROM {jobs}", nil, "id = ?", []any{n})
		if err == nil && len(gone) == 0 {
			err = fmt.Errorf("%w: job %s", backend.ErrNotFound, id)
		}
		if err != nil {
			return err
		}
		return s.setControl(ctx, tx, kindCancel, strconv.FormatInt(n, 10))
	})
}

// Orders implements backend.Control.
func (s *Store) Orders(ctx context.Context) (o backend.Orders, err error) {
	err = s.each(ctx, s.read, "SELECT kind, name, at FROM {control}", nil, func(rows *sql.Rows) error {
		var kind, name string
		var at int64
		if err := rows.Scan(&kind, &name, &at); err != nil {
			return err
		}
		switch kind {
		case kindPause:
			o.Paused = append(o.Paused, name)
		case kindRestart:
			o.Restart = at
		case kindCancel:
			o.Cancelled = append(o.Cancelled, name)
		}
		return nil
	})
	return o, err
}

// keepEnded is how many milliseconds a cancellation stays, for the job's worker to read, and the
// rows of ended locks.
const keepEnded = 10 * 60 * 1000

// sweepControl removes cancellations that every worker has had time to read.
func (s *Store) sweepControl(ctx context.Context) error {
	_, err := s.exec(ctx, s.db, "DELETE FROM {control} WHERE kind = ? AND at < {now} - ?", kindCancel, keepEnded)
	return err
}
