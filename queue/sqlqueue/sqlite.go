package sqlqueue

import (
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/taskd-go/task/queue/backend"
)

type sqlite struct{}

func (sqlite) name() string { return "sqlite" }

// It uses the julian day, since older shells lack unixepoch('subsec').
func (sqlite) now() string {
	return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
}

// A bare parameter after LIMIT is a hint to SQLite's planner: it would prepare the statement again
// at each run.
func (sqlite) rebind(text string) string { return strings.ReplaceAll(text, "LIMIT ?", "LIMIT ? + 0") }
func (sqlite) returning() bool           { return true }
func (sqlite) prepares() bool            { return true }
func (sqlite) tx() *sql.TxOptions        { return nil }

func (sqlite) ids(column string, list []int64) (string, []any) {
	return column + " IN (SELECT value FROM json_each(?))", []any{"[" + joinInts(list) + "]"}
}

func (sqlite) tokens(column string, list []string) (string, []any) {
	text, _ := json.Marshal(list) // strings always encode
	return column + " IN (SELECT value FROM json_each(?))", []any{string(text)}
}

func (sqlite) insertMany(messages []backend.Message, now int64) (string, []any, error) {
	return manyJSON(messages, now, "(SELECT json_extract(value, '$.p') AS p, json_extract(value, '$.t') AS t, "+
		"json_extract(value, '$.l') AS l FROM json_each(?))")
}

func (sqlite) inlines() bool { return false }

func (sqlite) skipConflict() string {
	return " ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING"
}

func (sqlite) upsert(key, set string) string {
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + set
}

func (sqlite) lock() string       { return "" }
func (sqlite) passLocked() string { return "" }

func (sqlite) candidates(queues int) string { return levels(queues, "") }
func (sqlite) nextID() string               { return "" }

func (sqlite) statementLimit() string { return "" }

func (sqlite) transient(err error) bool {
	return contains(err, "database is locked", "SQLITE_BUSY", "database table is locked")
}
func (sqlite) duplicate(err error) bool { return contains(err, "UNIQUE constraint failed") }
func (sqlite) tooLarge(err error) bool  { return contains(err, "string or blob too big") }
func (sqlite) missing(err error) bool   { return contains(err, "no such table", "no such column") }

// contains reads the text of the error, since this module imports no driver and so has no error
// types.
func contains(err error, texts ...string) bool {
	if err == nil {
		return false
	}
	for _, text := range texts {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
