package sqlqueue

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

// A claim asks for due jobs.
type claim struct {
	queues []string // in the order in which they are looked at
	limit  int
	token  string
	lease  time.Duration
	from   map[level]place // where each look begins; for other levels at the first row
}

// A level is the jobs of one queue and priority, in the order of their places.
type level struct {
	queue    string
	priority int
}

type place struct{ at, id int64 }

const reserve = "UPDATE {jobs} SET reserved_token = ?, reserved_at = {now}, lease_until = {now} + ?, " +
	"attempts = attempts + CASE WHEN attempts < 2147483647 THEN 1 ELSE 0 END, " + countSeq

// countSeq counts seq up. Another program may have set it to the largest number.
const countSeq = "seq = CASE WHEN seq < 9223372036854775807 THEN seq + 1 ELSE 0 END"

// claim reserves up to limit due jobs, counts an attempt of each, and returns them in their order.
func (s *Store) claim(ctx context.Context, c claim) (rows []*row, err error) {
	if s.d.returning() {
		rows, err = s.claimReturning(ctx, c)
	} else {
		rows, err = s.claimLocking(ctx, c)
	}
	slices.SortFunc(rows, byOrder(c.queues))
	return rows, err
}

func (c claim) candidateArgs() []any {
	var args []any
	for _, name := range c.queues {
		for p := backend.MaxPriority; p >= 0; p-- {
			from, ok := c.from[level{name, p}]
			if !ok {
				from.at = math.MinInt64
			}
			args = append(args, name, from.at, from.id, c.limit)
		}
	}
	return append(args, c.limit)
}

func (s *Store) claimReturning(ctx context.Context, c claim) (rows []*row, err error) {
	statement := "WITH due AS MATERIALIZED (" + s.d.candidates(len(c.queues)) + ") " + reserve +
		" WHERE id IN (SELECT id FROM due) RETURNING " + rowColumns
	args := append(c.candidateArgs(), c.token, c.lease.Milliseconds())
	err = s.again(ctx, func() error {
		rows = nil
		return s.each(ctx, s.db, statement, args, func(r *sql.Rows) error {
			row, err := scanRow(r)
			rows = append(rows, row)
			return err
		})
	})
	return rows, err
}

// claimTries is how often claimLocking looks if other workers took all that it found.
const claimTries = 5

func (s *Store) claimLocking(ctx context.Context, c claim) (rows []*row, err error) {
	for range claimTries {
		ids, err := s.idsOf(ctx, s.db, s.d.candidates(len(c.queues)), c.candidateArgs())
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		err = s.inTx(ctx, func(tx *sql.Tx) (err error) {
			rows, err = s.lockAndReserve(ctx, tx, c, ids)
			return err
		})
		if err != nil || len(rows) > 0 {
			return rows, err
		}
	}
	return nil, nil
}

func (s *Store) lockAndReserve(ctx context.Context, tx *sql.Tx, c claim, candidates []int64) (rows []*row, err error) {
	in, args := s.d.ids("id", candidates)
	statement := "SELECT " + rowColumns + ", {now} FROM {jobs} WHERE " + in +
		" AND reserved_token IS NULL AND available_at <= {now} FOR UPDATE SKIP LOCKED"
	var ids []int64
	err = s.each(ctx, tx, statement, args, func(r *sql.Rows) error {
		var now int64
		row, err := scanRow(r, &now)
		row.attempts = min(row.attempts+1, maxCount)
		row.token = sql.NullString{String: c.token, Valid: true}
		row.reservedAt = sql.NullInt64{Int64: now, Valid: true}
		row.leaseUntil = sql.NullInt64{Int64: now + c.lease.Milliseconds(), Valid: true}
		rows, ids = append(rows, row), append(ids, row.id)
		return err
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	in, inArgs := s.d.ids("id", ids)
	_, err = s.exec(ctx, tx, reserve+" WHERE "+in, append([]any{c.token, c.lease.Milliseconds()}, inArgs...)...)
	return rows, err
}

// renew extends the leases of reservations and returns the ids of those that are still held.
func (s *Store) renew(
	ctx context.Context, ids []int64, tokens []string, lease time.Duration,
) (held []int64, err error) {
	cond, args := s.reservations(ids, tokens)
	err = s.inTx(ctx, func(tx *sql.Tx) (err error) {
		held, err = s.change(ctx, tx, "UPDATE {jobs} SET lease_until = {now} + ?, "+countSeq,
			[]any{lease.Milliseconds()}, cond, args)
		return err
	})
	return held, err
}

// reservations returns the condition that a row is one of ids and has one of the tokens.
func (s *Store) reservations(ids []int64, tokens []string) (cond string, args []any) {
	tokens = slices.Compact(slices.Sorted(slices.Values(tokens)))
	inIDs, args := s.d.ids("id", ids)
	inTokens, tokenArgs := s.d.tokens("reserved_token", tokens)
	return inIDs + " AND " + inTokens, append(args, tokenArgs...)
}
