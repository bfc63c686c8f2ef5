package queue

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/taskd-go/task/job"
)

// A claim asks for due jobs.
type claim struct {
	queues []string // in the order in which they are looked at
	limit  int
	token  string
	lease  time.Duration
	from   map[level]place // where to look from; elsewhere from the beginning
}

// A level is the jobs of one queue and priority, in the order of their places.
type level struct {
	queue    string
	priority int
}

type place struct{ at, id int64 }

const reserve = "UPDATE {jobs} SET reserved_token = ?, reserved_at = {now}, lease_until = {now} + ?, attempts = attempts + 1, seq = seq + 1"

// claim reserves up to limit due jobs, counts an attempt of each, and returns them in their order.
func (q *Queue) claim(ctx context.Context, c claim) (rows []row, err error) {
	if q.d.returning() {
		rows, err = q.claimReturning(ctx, c)
	} else {
		rows, err = q.claimLocking(ctx, c)
	}
	slices.SortFunc(rows, byOrder(c.queues))
	return rows, err
}

func (c claim) candidateArgs() []any {
	var args []any
	for _, name := range c.queues {
		for p := maxPriority; p >= 0; p-- {
			from, ok := c.from[level{name, p}]
			if !ok {
				from.at = math.MinInt64
			}
			args = append(args, name, from.at, from.id, c.limit)
		}
	}
	return append(args, c.limit)
}

func (q *Queue) claimReturning(ctx context.Context, c claim) (rows []row, err error) {
	statement := "WITH due AS MATERIALIZED (" + q.d.candidates(len(c.queues)) + ") " + reserve +
		" WHERE id IN (SELECT id FROM due) RETURNING " + rowColumns
	args := append(c.candidateArgs(), c.token, c.lease.Milliseconds())
	err = q.again(ctx, func() error {
		rows = nil
		return q.each(ctx, q.db, statement, args, func(r *sql.Rows) error {
			row, err := scanRow(r)
			rows = append(rows, row)
			return err
		})
	})
	return rows, err
}

// claimTries is how often claimLocking looks again when others were faster.
const claimTries = 5

func (q *Queue) claimLocking(ctx context.Context, c claim) (rows []row, err error) {
	for range claimTries {
		ids, err := q.idsOf(ctx, q.db, q.d.candidates(len(c.queues)), c.candidateArgs())
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		err = q.inTx(ctx, func(tx *sql.Tx) (err error) {
			rows, err = q.lockAndReserve(ctx, tx, c, ids)
			return err
		})
		if err != nil || len(rows) > 0 {
			return rows, err
		}
	}
	return nil, nil
}

func (q *Queue) lockAndReserve(ctx context.Context, tx *sql.Tx, c claim, candidates []int64) (rows []row, err error) {
	in, args := q.d.ids("id", candidates)
	statement := "SELECT " + rowColumns + ", {now} FROM {jobs} WHERE " + in +
		" AND reserved_token IS NULL AND available_at <= {now} FOR UPDATE SKIP LOCKED"
	var ids []int64
	err = q.each(ctx, tx, statement, args, func(r *sql.Rows) error {
		var now int64
		row, err := scanRow(r, &now)
		row.attempts++
		row.token = sql.NullString{String: c.token, Valid: true}
		row.reservedAt = sql.NullInt64{Int64: now, Valid: true}
		row.leaseUntil = sql.NullInt64{Int64: now + c.lease.Milliseconds(), Valid: true}
		rows, ids = append(rows, row), append(ids, row.id)
		return err
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	in, inArgs := q.d.ids("id", ids)
	_, err = q.exec(ctx, tx, reserve+" WHERE "+in, append([]any{c.token, c.lease.Milliseconds()}, inArgs...)...)
	return rows, err
}

// renew extends the leases of reservations and returns the ids of those that are still held.
func (q *Queue) renew(ctx context.Context, ids []int64, tokens []string, lease time.Duration) (held []int64, err error) {
	cond, args := q.reservations(ids, tokens)
	err = q.inTx(ctx, func(tx *sql.Tx) (err error) {
		held, err = q.change(ctx, tx, "UPDATE {jobs} SET lease_until = {now} + ?, seq = seq + 1", []any{lease.Milliseconds()}, cond, args)
		return err
	})
	return held, err
}

// reservations is the condition of being one of the rows under one of the tokens.
func (q *Queue) reservations(ids []int64, tokens []string) (cond string, args []any) {
	tokens = slices.Compact(slices.Sorted(slices.Values(tokens)))
	inIDs, args := q.d.ids("id", ids)
	inTokens, tokenArgs := q.d.tokens("reserved_token", tokens)
	return inIDs + " AND " + inTokens, append(args, tokenArgs...)
}

// maxCrashes is how many workers a job may crash.
const maxCrashes = 3

// sweepChunk is how many lapsed rows one transaction of the sweep takes.
const sweepChunk = 100

// sweep ends lapsed reservations, of any queue and type but the kept ones: the job is due again, or dead when it is
// used up. It returns what it did with those rows.
func (q *Queue) sweep(ctx context.Context, policy job.RetryPolicy, by string, keptIDs []int64, keptTokens []string) (swept []verdict, err error) {
	for {
		lapsed, err := q.lapsed(ctx, keptIDs, keptTokens)
		if err != nil || len(lapsed) == 0 {
			return swept, err
		}
		var done []verdict
		err = q.inTx(ctx, func(tx *sql.Tx) error {
			done = nil
			for _, r := range lapsed {
				v := afterLapse(r, policy)
				ok, err := q.endReservation(ctx, tx, v, by)
				if err != nil {
					return err
				}
				if ok {
					done = append(done, v)
				}
			}
			return nil
		})
		if err != nil {
			if done, err = q.sweepEach(ctx, lapsed, policy, by); err != nil || len(done) == 0 {
				return append(swept, done...), err
			}
		}
		if swept = append(swept, done...); len(lapsed) < sweepChunk {
			return swept, nil
		}
	}
}

// sweepEach is for rows that did not go together: one that cannot be ended holds up no other. A second one says that it
// is the database's fault.
func (q *Queue) sweepEach(ctx context.Context, lapsed []row, policy job.RetryPolicy, by string) (done []verdict, err error) {
	bad := 0
	for _, r := range lapsed {
		v := afterLapse(r, policy)
		ok, err := q.endAlone(ctx, v, by)
		switch {
		case err != nil && (bad > 0 || ctx.Err() != nil):
			return done, err
		case err != nil:
			bad++
			q.logger.Warn("queue: a lapsed reservation cannot be ended", "job", r.idText(), "error", err)
		case ok:
			done = append(done, v)
		}
	}
	return done, nil
}

func (q *Queue) lapsed(ctx context.Context, keptIDs []int64, keptTokens []string) (rows []row, err error) {
	cond, args := "reserved_token IS NOT NULL AND lease_until < {now}", []any(nil)
	if len(keptIDs) > 0 {
		var kept string
		kept, args = q.reservations(keptIDs, keptTokens)
		cond += " AND NOT (" + kept + ")"
	}
	statement := "SELECT " + rowColumns + " FROM {jobs} WHERE " + cond + " ORDER BY lease_until LIMIT " + strconv.Itoa(sweepChunk)
	err = q.each(ctx, q.read, statement, args, func(r *sql.Rows) error {
		row, err := scanRow(r)
		rows = append(rows, row)
		return err
	})
	return rows, err
}
