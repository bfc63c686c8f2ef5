package queue

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed migrations
var migrationFiles embed.FS

// Migrations are the SQL files that make the queue's tables, in the order of their names, with the names of t in
// them. Their comments are those of goose, which queue/sqlqueue/migrate uses; another tool may read the part between
// "+goose Up" and "+goose Down". For a Dialect or Tables that New refuses, opening a file gives that error.
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

// named is a directory of files with the names of tables put in.
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
