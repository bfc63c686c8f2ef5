package sqlqueue

import (
	"context"
	"database/sql"
	"math"
	"slices"
)

// clearChunk bounds how long one statement of Clear or Prune holds its locks.
const clearChunk = 1000

// Clear implements backend.Admin.
func (s *Store) Clear(ctx context.Context, queue string) (n int64, err error) {
	cond, args := "reserved_token IS NULL", []any{}
	if queue != "" {
		cond, args = "queue = ? AND "+cond, []any{queue}
	}
	return s.deleteInChunks(ctx, "{jobs}", "id", cond, args)
}

// deleteInChunks deletes the rows that fulfil cond in the order of key, a column of whole numbers
// with an index. Each look begins where the last one ended, so that it does not read deleted rows
// again.
func (s *Store) deleteInChunks(ctx context.Context, table, key, cond string, args []any) (n int64, err error) {
	look := "SELECT id, " + key + " FROM " + table + " WHERE " + key + " >= ? AND " + cond + " ORDER BY " + key +
		" LIMIT ?"
	for from := int64(math.MinInt64); ; {
		var ids []int64
		err := s.each(ctx, s.read, look, slices.Concat([]any{from}, args, []any{clearChunk}), func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id, &from)
			ids = append(ids, id)
			return err
		})
		if err != nil || len(ids) == 0 {
			return n, err
		}
		var deleted int64
		in, inArgs := s.d.ids("id", ids)
		err = s.inTx(ctx, func(tx *sql.Tx) error {
			result, err := s.exec(ctx, tx, "DELETE FROM "+table+" WHERE "+in+" AND "+cond, slices.Concat(inArgs, args)...)
			if err != nil {
				return err
			}
			deleted, err = result.RowsAffected()
			return err
		})
		if err != nil {
			return n, err
		}
		n += deleted
	}
}
