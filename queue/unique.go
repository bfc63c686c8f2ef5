package queue

import (
	"context"
	"database/sql"
	"errors"
)

// errRaced says that the job which had a unique key went between two looks.
var errRaced = errors.New("queue: unique key changed hands too often")

// pushUnique pushes a job whose key may be taken. The unique index decides, so of many at once one gets it.
func (q *Queue) pushUnique(ctx context.Context, tx *sql.Tx, p *push) (id string, err error) {
	if tx != nil {
		return q.pushUniqueIn(ctx, tx, p)
	}
	err = q.inTx(ctx, func(tx *sql.Tx) error {
		id, err = q.pushUniqueIn(ctx, tx, p)
		return err
	})
	return id, err
}

func (q *Queue) pushUniqueIn(ctx context.Context, tx *sql.Tx, p *push) (id string, err error) {
	const rounds = 5
	for range rounds {
		if p.onTaken == Replace {
			if _, err := q.exec(ctx, tx, "DELETE FROM {jobs} WHERE unique_key = ? AND reserved_token IS NULL", p.uniqueKey); err != nil {
				return "", err
			}
		}
		ids, err := q.insert(ctx, tx, p)
		if err != nil {
			return "", err
		}
		if len(ids) == 1 {
			return ids[0], nil
		}
		holder, err := q.keyHolder(ctx, tx, p.uniqueKey)
		switch {
		case err != nil:
			return "", err
		case holder == "":
			continue // it finished meanwhile
		case p.onTaken == Existing:
			return holder, nil
		default:
			return "", &DuplicateError{Key: p.key, Existing: holder}
		}
	}
	return "", errRaced
}

func (q *Queue) keyHolder(ctx context.Context, x sqlRunner, key string) (id string, err error) {
	err = q.each(ctx, x, "SELECT id FROM {jobs} WHERE unique_key = ?", []any{key}, func(rows *sql.Rows) error {
		return rows.Scan(&id)
	})
	return id, err
}
