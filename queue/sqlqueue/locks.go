package sqlqueue

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/queue/backend"
)

// Locks implements backend.Locker. All programs that use the database share its leases and counts,
// which are on the database's clock.
func (s *Store) Locks() middleware.Store { return locks{s} }

// locks is the middleware.Store in the tables. Each place under a key is a row; a lease is an owner
// and an end in it. A look for a free place skips rows that others have locked, so that many places
// are taken and released at the same time. Calls of Take under one key run one after another, under
// the lock of the key's row, and so do calls of Add. Workers remove ended rows; see Tidy.
type locks struct{ s *Store }

// The prefixes of keys in the tables.
const (
	spaceLease = "l:"
	spaceTake  = "t:"
	spaceCount = "c:"
)

// maxStoreKey is the most bytes of a key: with its prefix it must fit into MySQL's VARCHAR(512).
const maxStoreKey = 500

// Take implements middleware.Store.
func (l locks) Take(
	ctx context.Context, key string, most int, window time.Duration,
) (ok bool, wait time.Duration, err error) {
	if err := check(key, "window", window); err != nil {
		return false, 0, err
	}
	if err := ctx.Err(); err != nil {
		return false, 0, err
	}
	if most <= 0 {
		return false, window, nil
	}
	name, ms := spaceTake+key, roundUp(window)
	err = l.locked(ctx, name, ms, func(tx *sql.Tx, now int64) error {
		ok, wait = false, 0
		at, next, err := l.taken(ctx, tx, name)
		if err != nil {
			return err
		}
		if n := len(at); n >= most {
			if opens := at[n-most] + ms; opens > now {
				wait = min(time.Duration(opens-now)*time.Millisecond, window)
				return nil
			}
			if _, err := l.s.exec(ctx, tx, "DELETE FROM {holds} WHERE name = ? AND at < ?", name, at[n-most]); err != nil {
				return err
			}
		}
		ok = true
		_, err = l.s.exec(ctx, tx, "INSERT INTO {holds} (name, slot, at) VALUES (?, ?, ?)", name, next, now)
		return err
	})
	return ok && err == nil, wait, err
}

// Add implements middleware.Store.
func (l locks) Add(ctx context.Context, key string, window time.Duration) (n int, err error) {
	if err := check(key, "window", window); err != nil {
		return 0, err
	}
	name, ms := spaceCount+key, roundUp(window)
	err = l.locked(ctx, name, 0, func(tx *sql.Tx, now int64) error {
		var ends int64
		if n, ends, err = l.count(ctx, tx, name); err != nil {
			return err
		}
		if ends <= now {
			n = 0
		}
		n++
		_, err = l.s.exec(ctx, tx, "UPDATE {locks} SET n = ?, ends = ?, seq = seq + 1 WHERE name = ?", n, now+ms, name)
		return err
	})
	return n, err
}

// Count implements middleware.Store.
func (l locks) Count(ctx context.Context, key string) (n int, left time.Duration, err error) {
	if err := checkKey(key); err != nil {
		return 0, 0, err
	}
	var ends, now int64
	statement := "SELECT n, ends, {now} FROM {locks} WHERE name = ?"
	err = l.s.each(ctx, l.s.read, statement, []any{spaceCount + key}, func(rows *sql.Rows) error {
		return rows.Scan(&n, &ends, &now)
	})
	if err != nil || ends <= now {
		return 0, 0, err
	}
	return n, time.Duration(ends-now) * time.Millisecond, nil
}

// locked runs fn in a transaction that has the lock of the key's row. That row stays for at least
// keep ms.
func (l locks) locked(ctx context.Context, name string, keep int64, fn func(tx *sql.Tx, now int64) error) error {
	return l.limited(ctx, func(ctx context.Context) error {
		return l.s.inTx(ctx, func(tx *sql.Tx) error {
			_, err := l.s.exec(ctx, tx, "INSERT INTO {locks} (name, n, ends) VALUES (?, 0, {now} + ?)"+
				l.s.d.upsert("name", "seq = {locks}.seq + 1, ends = CASE WHEN {locks}.n = 0"+
					" AND {locks}.ends < {now} + ? THEN {now} + ? ELSE {locks}.ends END"),
				name, keep, keep, keep)
			if err != nil {
				return err
			}
			now, err := l.s.now(ctx, tx) // read after the lock is taken
			if err != nil {
				return err
			}
			return fn(tx, now)
		})
	})
}

// taken returns the times of the takes, in order, and the slot of the next one.
func (l locks) taken(ctx context.Context, tx *sql.Tx, name string) (at []int64, next int64, err error) {
	err = l.s.each(ctx, tx, "SELECT slot, at FROM {holds} WHERE name = ? ORDER BY at, slot", []any{name},
		func(rows *sql.Rows) error {
			var slot, t int64
			err := rows.Scan(&slot, &t)
			at, next = append(at, t), max(next, slot+1)
			return err
		})
	return at, next, err
}

func (l locks) count(ctx context.Context, tx *sql.Tx, name string) (n int, ends int64, err error) {
	err = l.s.each(ctx, tx, "SELECT n, ends FROM {locks} WHERE name = ?", []any{name}, func(rows *sql.Rows) error {
		return rows.Scan(&n, &ends)
	})
	return n, ends, err
}

// sweepLocks removes the rows of keys that ended a while ago.
func (s *Store) sweepLocks(ctx context.Context) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		var names []string
		err := s.each(ctx, tx, "SELECT name FROM {locks} WHERE ends < {now} - ? ORDER BY ends LIMIT ?",
			[]any{keepEnded, sweepChunk}, func(rows *sql.Rows) error {
				var name string
				err := rows.Scan(&name)
				names = append(names, name)
				return err
			})
		for _, name := range names {
			if err != nil {
				break
			}
			var result sql.Result
			result, err = s.exec(ctx, tx, "DELETE FROM {locks} WHERE name = ? AND ends < {now} - ?", name, keepEnded)
			if err != nil {
				break
			}
			if n, _ := result.RowsAffected(); n > 0 {
				err = s.sweepHolds(ctx, tx, name)
			}
		}
		return err
	})
}

// sweepHolds removes the ended rows under a key. If there are others, it inserts the row of the key
// again.
func (s *Store) sweepHolds(ctx context.Context, tx *sql.Tx, name string) error {
	if _, err := s.exec(ctx, tx, "DELETE FROM {holds} WHERE name = ? AND at < {now} - ?", name, keepEnded); err != nil {
		return err
	}
	left := false
	err := s.each(ctx, tx, "SELECT slot FROM {holds} WHERE name = ? LIMIT 1", []any{name}, func(*sql.Rows) error {
		left = true
		return nil
	})
	if err == nil && left {
		_, err = s.exec(ctx, tx, "INSERT INTO {locks} (name, ends) VALUES (?, {now})", name)
	}
	return err
}

func check(key, name string, d time.Duration) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("key %q: %s %v must be positive", key, name, d)
	}
	return nil
}

func checkSlots(key string, slots int) error {
	if slots < 1 {
		return fmt.Errorf("key %q: slots %d must be at least 1", key, slots)
	}
	return nil
}

func checkKey(key string) error {
	if key == "" || len(key) > maxStoreKey {
		return fmt.Errorf("key %q must be 1 to %d bytes", key, maxStoreKey)
	}
	return nil
}

func checkOwner(key, owner string) error {
	if owner == "" || len(owner) > backend.MaxKey {
		return fmt.Errorf("key %q: owner %q must be 1 to %d bytes", key, owner, backend.MaxKey)
	}
	return nil
}

func roundUp(d time.Duration) int64 { return max(delayMS(d), 1) }
