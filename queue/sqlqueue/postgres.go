package sqlqueue

import (
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/taskd-go/task/queue/backend"
)

type postgres struct{}

func (postgres) name() string { return "postgres" }

// The sub-select makes it one value for the whole statement: PostgreSQL cannot search an index for
// a volatile one.
func (postgres) now() string {
	return "(SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
}
func (postgres) rebind(text string) string { return dollars(text) }
func (postgres) returning() bool           { return true }
func (postgres) prepares() bool            { return false } // the driver does, or must not because of PgBouncer
func (postgres) tx() *sql.TxOptions        { return &sql.TxOptions{Isolation: sql.LevelReadCommitted} }

// A list is sent as the text of an array, since every driver can send a text.
func (postgres) ids(column string, list []int64) (string, []any) {
	return column + " = ANY (CAST(CAST(? AS text) AS bigint[]))", []any{"{" + joinInts(list) + "}"}
}

func (postgres) tokens(column string, list []string) (string, []any) {
	return column + " = ANY (CAST(CAST(? AS text) AS text[]))", []any{"{" + strings.Join(list, ",") + "}"}
}

// One long text is faster than thousands of parameters, for the server and even more for the
// driver.
func (postgres) insertMany(messages []backend.Message, now int64) (string, []any, error) {
	return manyJSON(messages, now, "json_to_recordset(CAST(? AS json)) AS row (p text, t integer, l bigint)")
}

func (postgres) inlines() bool { return false }

func (postgres) skipConflict() string {
	return " ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING"
}

func (postgres) upsert(key, set string) string {
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + set
}

func (postgres) lock() string       { return " FOR UPDATE" }
func (postgres) passLocked() string { return " FOR UPDATE SKIP LOCKED" }

func (postgres) candidates(queues int) string { return levels(queues, postgres{}.passLocked()) }
func (postgres) nextID() string               { return "" }

func (postgres) statementLimit() string { return "" }

func (postgres) transient(err error) bool { return sqlState(err, "40001", "40P01", "55P03") }
func (postgres) duplicate(err error) bool { return sqlState(err, "23505") }
func (postgres) tooLarge(err error) bool  { return sqlState(err, "54000") }
func (postgres) missing(err error) bool   { return sqlState(err, "42P01", "42703", "3F000") }

func sqlState(err error, codes ...string) bool {
	var e interface{ SQLState() string }
	return errors.As(err, &e) && slices.Contains(codes, e.SQLState())
}
