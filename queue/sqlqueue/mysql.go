package sqlqueue

import (
	"database/sql"
	"strings"

	"github.com/taskd-go/task/queue/backend"
)

type mysql struct{}

func (mysql) name() string { return "mysql" }

func (mysql) now() string {
	return "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)"
}
func (mysql) rebind(text string) string { return text }
func (mysql) returning() bool           { return false }
func (mysql) prepares() bool            { return false }

// Without gap locks there are far fewer deadlocks.
func (mysql) tx() *sql.TxOptions { return &sql.TxOptions{Isolation: sql.LevelReadCommitted} }

func (mysql) ids(column string, list []int64) (string, []any) {
	if len(list) == 0 {
		return "FALSE", nil
	}
	return column + " IN (" + joinInts(list) + ")", nil
}

func (mysql) tokens(column string, list []string) (string, []any) {
	args := make([]any, len(list))
	for i, t := range list {
		args[i] = t
	}
	return column + " IN (" + strings.TrimSuffix(strings.Repeat("?,", len(list)), ",") + ")", args
}

func (mysql) insertMany(messages []backend.Message, now int64) (string, []any, error) {
	return manyValues(messages, now)
}

func (mysql) inlines() bool { return true }

func (mysql) skipConflict() string { return "" }

func (mysql) upsert(_, set string) string { return " ON DUPLICATE KEY UPDATE " + set }

func (mysql) lock() string       { return " FOR UPDATE" }
func (mysql) passLocked() string { return " FOR UPDATE SKIP LOCKED" }

// The candidates are not locked, since older servers do not know a lock under UNION; lockAndReserve
// locks them.
func (mysql) candidates(queues int) string { return levels(queues, "") }

// InnoDB gives the rows of one INSERT, if their number is known before, consecutive ids with this
// step.
func (mysql) nextID() string { return "SELECT @@auto_increment_increment" }

func (mysql) statementLimit() string { return "SELECT @@max_allowed_packet" }

func (mysql) transient(err error) bool { return contains(err, "Error 1213", "Error 1205") }
func (mysql) duplicate(err error) bool { return contains(err, "Error 1062") }
func (mysql) tooLarge(err error) bool {
	return contains(err, "Error 1153", "packet for query is too large")
}
func (mysql) missing(err error) bool { return contains(err, "Error 1146", "Error 1054") }
