package sqlqueue

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
)

// Acquire implements middleware.Store.
func (l locks) Acquire(
	ctx context.Context, key, owner string, slots int, ttl time.Duration,
) (ok bool, free time.Duration, err error) {
	if err := errors.Join(check(key, "ttl", ttl), checkOwner(key, owner), checkSlots(key, slots)); err != nil {
		return false, 0, err
	}
	err = l.limited(ctx, func(ctx context.Context) (err error) {
		for range acquireTries {
			if ok, free, err = l.acquireOnce(ctx, spaceLease+key, owner, slots, roundUp(ttl)); ok || free > 0 || err != nil {
				return err
			}
		}
		free = time.Millisecond // other transactions have the free places locked
		return nil
	})
	return ok && err == nil, free, err
}

// acquireOnce returns false and 0 if another try may get a place.
func (l locks) acquireOnce(
	ctx context.Context, name, owner string, slots int, ms int64,
) (ok bool, free time.Duration, err error) {
	if ok, err = l.takePlace(ctx, name, owner, slots, ms); ok || err != nil {
		return ok, 0, err
	}
	p, err := l.places(ctx, name)
	n := len(p.ends)
	switch {
	case err != nil:
		return false, 0, err
	case p.held[owner]:
		ok, err = l.renew(ctx, name, owner, ms)
		return ok, 0, err
	case n >= slots:
		return false, time.Duration(p.ends[n-slots]-p.now) * time.Millisecond, nil
	}
	return false, 0, l.makePlaces(ctx, name, p.missing(slots))
}

// acquireTries is how often Acquire tries while places are free but other transactions have them
// locked.
const acquireTries = 4

// takePlace takes one of the first slots places under a name, unless owner has one or slots are
// held. It skips rows that others have locked.
func (l locks) takePlace(ctx context.Context, name, owner string, slots int, ms int64) (ok bool, err error) {
	const take = "UPDATE {holds} SET owner = ?, at = {now} + ?, seq = seq + 1 WHERE name = ? AND slot = "
	place := "SELECT slot FROM {holds} WHERE name = ? AND slot < ? AND at <= {now}" +
		" AND (SELECT COUNT(*) FROM {holds} h WHERE h.name = ? AND h.at > {now}) < ?" +
		" AND NOT EXISTS (SELECT 1 FROM {holds} o WHERE o.name = ? AND o.owner = ? AND o.at > {now})" +
		" ORDER BY slot LIMIT 1" + l.s.d.passLocked()
	args := []any{name, slots, name, slots, name, owner}
	if l.s.d.returning() {
		return l.change(ctx, take+"("+place+")", append([]any{owner, ms, name}, args...)...)
	}
	err = l.s.inTx(ctx, func(tx *sql.Tx) error {
		ok = false
		var slot int64
		err := l.s.each(ctx, tx, place, args, func(rows *sql.Rows) error {
			ok = true
			return rows.Scan(&slot)
		})
		if err != nil || !ok {
			return err
		}
		_, err = l.s.exec(ctx, tx, take+"?", owner, ms, name, slot)
		return err
	})
	return ok, err
}

// places describe the rows under a name.
type places struct {
	now   int64
	ends  []int64 // of the leases, in order
	held  map[string]bool
	slots map[int]bool // that have a row
}

func (l locks) places(ctx context.Context, name string) (p places, err error) {
	p.held, p.slots = map[string]bool{}, map[int]bool{}
	statement := "SELECT slot, owner, at, {now} FROM {holds} WHERE name = ?"
	err = l.s.each(ctx, l.s.db, statement, []any{name}, func(rows *sql.Rows) error {
		var slot int
		var owner string
		var at int64
		err := rows.Scan(&slot, &owner, &at, &p.now)
		p.slots[slot] = true
		if at > p.now {
			p.ends, p.held[owner] = append(p.ends, at), true
		}
		return err
	})
	slices.Sort(p.ends)
	return p, err
}

// morePlaces is how many rows are made at once if no row is free but slots allow more.
const morePlaces = 16

// missing returns up to morePlaces of the first slots that have no row.
func (p places) missing(slots int) (missing []any) {
	for slot := 0; slot < slots && len(missing) < morePlaces; slot++ {
		if !p.slots[slot] {
			missing = append(missing, slot)
		}
	}
	return missing
}

// makePlaces makes rows for slots, and the row of the key by which the sweep finds them.
func (l locks) makePlaces(ctx context.Context, name string, slots []any) error {
	if len(slots) == 0 {
		return nil
	}
	var args []any
	for _, slot := range slots {
		args = append(args, name, slot)
	}
	statement := "INSERT INTO {holds} (name, slot, at) VALUES (?, ?, 0)" + strings.Repeat(", (?, ?, 0)", len(slots)-1) +
		l.s.d.upsert("name, slot", "seq = {holds}.seq + 1")
	return l.s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := l.s.exec(ctx, tx, "INSERT INTO {locks} (name, ends) VALUES (?, {now})"+
			l.s.d.upsert("name", "ends = {now}, seq = {locks}.seq + 1"), name)
		if err == nil {
			_, err = l.s.exec(ctx, tx, statement, args...)
		}
		return err
	})
}

// Renew implements middleware.Store.
func (l locks) Renew(ctx context.Context, key, owner string, ttl time.Duration) (held bool, err error) {
	if err := errors.Join(check(key, "ttl", ttl), checkOwner(key, owner)); err != nil {
		return false, err
	}
	err = l.limited(ctx, func(ctx context.Context) error {
		held, err = l.renew(ctx, spaceLease+key, owner, roundUp(ttl))
		return err
	})
	return held && err == nil, err
}

func (l locks) renew(ctx context.Context, name, owner string, ms int64) (held bool, err error) {
	return l.change(ctx, "UPDATE {holds} SET at = {now} + ?, seq = seq + 1 WHERE name = ? AND owner = ?"+
		" AND at > {now}", ms, name, owner)
}

// Release implements middleware.Store.
func (l locks) Release(ctx context.Context, key, owner string) error {
	if err := errors.Join(checkKey(key), checkOwner(key, owner)); err != nil {
		return err
	}
	return l.limited(ctx, func(ctx context.Context) error {
		_, err := l.change(ctx, "UPDATE {holds} SET owner = '', at = 0, seq = seq + 1 WHERE name = ? AND owner = ?",
			spaceLease+key, owner)
		return err
	})
}

// change runs one statement and reports whether it changed a row. On MySQL it uses a transaction,
// whose isolation level keeps the statement from locking every row that it reads.
func (l locks) change(ctx context.Context, statement string, args ...any) (ok bool, err error) {
	run := func(x runner) error {
		result, err := l.s.exec(ctx, x, statement, args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		ok = n > 0
		return err
	}
	if l.s.d.returning() {
		err = l.s.again(ctx, func() error { return run(l.s.db) })
	} else {
		err = l.s.inTx(ctx, func(tx *sql.Tx) error { return run(tx) })
	}
	return ok && err == nil, err
}

const storeLimit = 10 * time.Second

// limited runs fn with the store's own time limit.
func (l locks) limited(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	return fn(ctx)
}
