package sqlqueue

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/taskd-go/task/queue/backend"
)

// Tables are the names of the queue's tables: letters, digits and underscores, at most 48 bytes
// with the prefix. The zero value means the defaults. Two queues in one database need different
// prefixes, even if Jobs and Failed differ: the names of the other tables depend on the prefix
// alone.
type Tables struct {
	Prefix string // of every table, including Jobs and Failed
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
			return names{}, wrongName(name, fmt.Sprintf("must be letters, digits and underscores, at most %d bytes", maxName))
		}
		lower := strings.ToLower(name) // most databases ignore the case
		if seen[lower] {
			return names{}, wrongName(name, "must not be that of another table of the queue")
		}
		seen[lower] = true
	}
	return n, nil
}

func wrongName(name, rule string) error {
	return &backend.ConfigError{Option: "table name", Value: fmt.Sprintf("%q", name), Rule: rule}
}

// Check returns the error that New would return for t.
func (t Tables) Check() error {
	_, err := t.names()
	return err
}

// Migrated returns the name of the table in which a migration tool records what it has applied.
func (t Tables) Migrated() string { return t.Prefix + "queue_migrations" }

func (n names) replacer() *strings.Replacer {
	return strings.NewReplacer("{jobs}", n.jobs, "{failed}", n.failed, "{control}", n.control, "{locks}", n.locks,
		"{holds}", n.holds)
}

//go:embed migrations
var migrationFiles embed.FS

// Migrations returns the SQL files that make the queue's tables, with the names of t, to be applied
// in the order of the files' names. The comments in them are for goose, which sqlqueue/migrate
// uses; another tool can apply the part between "+goose Up" and "+goose Down". If New refuses d or
// t, opening a file returns the error.
func Migrations(d Dialect, t Tables) fs.FS {
	n, err := t.names()
	if err == nil && d.impl() == nil {
		err = fmt.Errorf("queue: %v is no dialect", d)
	}
	dir, subErr := fs.Sub(migrationFiles, "migrations/"+strings.ToLower(d.String()))
	if err == nil {
		err = subErr
	}
	return named{dir: dir, names: n.replacer(), err: err}
}

// named is a directory of files in which the names of the tables are filled in.
type named struct {
	dir   fs.FS
	names *strings.Replacer
	err   error
}

func (n named) Open(name string) (fs.File, error) {
	if n.err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: n.err}
	}
	f, err := n.dir.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	f.Close()
	text, err := fs.ReadFile(n.dir, name)
	if err != nil {
		return nil, err
	}
	info, err := fs.Stat(n.dir, name)
	if err != nil {
		return nil, err
	}
	text = []byte(n.names.Replace(string(text)))
	return &namedFile{Reader: bytes.NewReader(text), info: namedInfo{info, int64(len(text))}}, nil
}

type namedFile struct {
	*bytes.Reader
	info namedInfo
}

func (f *namedFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *namedFile) Close() error               { return nil }

type namedInfo struct {
	fs.FileInfo
	size int64
}

func (i namedInfo) Size() int64 { return i.size }
