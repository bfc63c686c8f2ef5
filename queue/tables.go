package queue

import (
	"fmt"
	"regexp"
	"strings"
)

// Tables are the names of the queue's tables: letters, digits and underscores, at most 48 bytes with the prefix. The
// zero value means the defaults. A prefix has one set of tables, whatever their names: what was applied is kept
// under the prefix alone.
type Tables struct {
	Prefix string // of every table, the two below included
	Jobs   string // default "jobs"
	Failed string // default "failed_jobs"
}

// maxName leaves room for the suffixes of indexes within PostgreSQL's 63 bytes.
const maxName = 48

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// names are the full names of all tables.
type names struct{ jobs, failed, control, locks, holds, migrations string }

func (t Tables) names() (names, error) {
	if t.Jobs == "" {
		t.Jobs = "jobs"
	}
	if t.Failed == "" {
		t.Failed = "failed_jobs"
	}
	n := names{
		jobs: t.Prefix + t.Jobs, failed: t.Prefix + t.Failed, control: t.Prefix + "queue_control",
		locks: t.Prefix + "queue_locks", holds: t.Prefix + "queue_holds", migrations: t.Prefix + "queue_migrations",
	}
	seen := map[string]bool{}
	for _, name := range []string{n.jobs, n.failed, n.control, n.locks, n.holds, n.migrations} {
		if !tableName.MatchString(name) || len(name) > maxName {
			return names{}, &ConfigError{"table name", fmt.Sprintf("%q", name),
				fmt.Sprintf("must be letters, digits and underscores, at most %d bytes", maxName)}
		}
		lower := strings.ToLower(name) // as most databases have it
		if seen[lower] {
			return names{}, &ConfigError{"table name", fmt.Sprintf("%q", name), "must not be that of another table of the queue"}
		}
		seen[lower] = true
	}
	return n, nil
}

// Check says what New would refuse in t.
func (t Tables) Check() error {
	_, err := t.names()
	return err
}

// Migrated is the name of the table in which a migration tool keeps what it has applied.
func (t Tables) Migrated() string { return t.Prefix + "queue_migrations" }

func (n names) replacer() *strings.Replacer {
	return strings.NewReplacer("{jobs}", n.jobs, "{failed}", n.failed, "{control}", n.control, "{locks}", n.locks, "{holds}", n.holds)
}
