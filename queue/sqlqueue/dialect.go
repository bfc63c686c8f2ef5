package sqlqueue

import (
	"database/sql"
	"strconv"
	"strings"

	"github.com/taskd-go/task/queue/backend"
)

// A Dialect is the SQL of one kind of database.
type Dialect int

// The dialects. MySQL is for MariaDB too.
const (
	SQLite Dialect = iota + 1
	PostgreSQL
	MySQL
)

func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "Postgres"
	case MySQL:
		return "MySQL"
	}
	return "Dialect(" + strconv.Itoa(int(d)) + ")"
}

// impl returns nil for a number that is no Dialect.
func (d Dialect) impl() dialect {
	switch d {
	case SQLite:
		return sqlite{}
	case PostgreSQL:
		return postgres{}
	case MySQL:
		return mysql{}
	}
	return nil
}

// A dialect has what differs between the databases. In its statements ? is a parameter and {now}
// the database's clock in UTC milliseconds.
type dialect interface {
	name() string
	now() string
	rebind(text string) string

	// returning reports whether a changing statement can return the rows that it changed.
	returning() bool
	// prepares reports whether a Store prepares its statements.
	prepares() bool
	tx() *sql.TxOptions

	// ids and tokens return the condition that a column is in a list.
	ids(column string, list []int64) (cond string, args []any)
	tokens(column string, list []string) (cond string, args []any)
	// inlines reports whether ids and tokens put their lists into the statement. Then there are too
	// many different statements to keep.
	inlines() bool

	// insertMany is one INSERT for several messages. Their ids count up in their order.
	insertMany(messages []backend.Message, now int64) (statement string, args []any, err error)
	// skipConflict is the end of an INSERT that does nothing if the unique key is taken; "" where
	// that is an error.
	skipConflict() string
	// upsert is the end of an INSERT that changes the row with the same key instead, if there is
	// one.
	upsert(key, set string) string
	// lock is the end of a SELECT that locks its rows, and passLocked of one that skips rows that
	// others have locked; "" where there is one writer at a time.
	lock() string
	passLocked() string
	// candidates selects the ids of up to limit due rows from the queues in their order; see
	// claim.go.
	candidates(queues int) string
	// nextID selects the distance between the ids of two rows of one INSERT, where returning is
	// false.
	nextID() string

	// statementLimit selects how many bytes a statement may have; "" where that is more than ours need.
	statementLimit() string

	transient(err error) bool // another try of the whole transaction may work
	duplicate(err error) bool // a unique key is taken
	missing(err error) bool   // a table or column is missing
	tooLarge(err error) bool  // a statement or a value is too large
}

// levelRows selects the due rows of one queue and priority in their order. Its parameters are the
// queue, the place to begin at and the limit.
func levelRows(priority int, lock string) string {
	return "SELECT id FROM {jobs} WHERE queue = ? AND priority = " + strconv.Itoa(priority) +
		" AND reserved_token IS NULL AND available_at <= {now} AND (available_at, id) >= (?, ?) ORDER BY available_at, id" +
		" LIMIT ?" + lock
}

// levels selects the due rows of several queues, all those of the first queue first. Its parameters
// are those of levelRows, for each queue and each priority from the highest to the lowest, and then
// the limit.
func levels(queues int, lock string) string {
	var b strings.Builder
	for i := range queues {
		for p := backend.MaxPriority; p >= 0; p-- {
			if i > 0 || p < backend.MaxPriority {
				b.WriteString(" UNION ALL ")
			}
			b.WriteString("SELECT id FROM (" + levelRows(p, lock) + ") l" + strconv.Itoa(i) + strconv.Itoa(p))
		}
	}
	return "SELECT id FROM (" + b.String() + ") due LIMIT ?"
}

// dollars numbers the parameters as PostgreSQL needs it. Each ? in our statements is a parameter.
func dollars(text string) string {
	var b strings.Builder
	n := 0
	for {
		i := strings.IndexByte(text, '?')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		n++
		b.WriteString(text[:i] + "$" + strconv.Itoa(n))
		text = text[i+1:]
	}
}

func joinInts(list []int64) string {
	var b []byte
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}
