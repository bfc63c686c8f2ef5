package job

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/taskd-go/task/internal/sys"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// maxRemoved is how many bytes of removed letters a file may hold before it is compacted; it may
// hold more while the letters that are left are larger.
const maxRemoved = 1 << 20

// FileDeadLetters stores dead letters in a file of JSON lines, one for each Put and each Remove.
// When a call returns without an error, its line is on the disk. Opening the file cuts off a last
// line that a crash left unfinished; any other line that cannot be read becomes a broken letter.
// Memory holds an index only.
//
// One process at a time has the file open; it holds a lock on {path}.lock. FileDeadLetters is safe
// for concurrent use.
type FileDeadLetters struct {
	path string
	lock *os.File

	mu    sync.Mutex
	file  *os.File
	size  int64
	live  int64 // bytes of the letters in the index
	index *letterIndex[span]
	err   error // why the file can no longer be written

	compactAt int64 // after a failed compaction, the size from which it is tried again
}

// A span is the place of a letter's line in the file, with its newline.
type span struct{ at, n int64 }

// A fileLine is one line of the file: a letter that was put, or the ids of removed ones.
type fileLine struct {
	Put    json.RawMessage `json:"put,omitempty"`
	Remove []string        `json:"remove,omitempty"`
}

// OpenFileDeadLetters opens the file at path, or creates it with mode 0600. Its directory must
// exist. It fails if another process has the file open.
func OpenFileDeadLetters(path string) (*FileDeadLetters, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("job: dead letters: %w", err)
	}
	if err := sys.TryLock(lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("job: dead letters %s: another process has it open: %w", path, err)
	}
	f := &FileDeadLetters{path: path, lock: lock, index: newLetterIndex[span]()}
	if err := f.load(); err != nil {
		f.Close()
		return nil, fmt.Errorf("job: dead letters %s: %w", path, err)
	}
	return f, nil
}

// load builds the index and cuts off an unfinished last line.
func (f *FileDeadLetters) load() (err error) {
	if f.file, err = os.OpenFile(f.path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	in := bufio.NewReader(f.file)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break // a line without a newline was never acknowledged
		}
		if err != nil {
			return err
		}
		f.apply(line)
	}
	if err := f.file.Truncate(f.size); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// apply updates the index for a line at the end of the file.
func (f *FileDeadLetters) apply(line []byte) {
	where := span{f.size, int64(len(line))}
	f.size += where.n
	var l fileLine
	if err := json.Unmarshal(line, &l); err != nil || l.Put == nil && l.Remove == nil {
		f.place(brokenID(line), DefaultQueue, where)
		return
	}
	for _, id := range l.Remove {
		f.drop(id)
	}
	if l.Put != nil {
		var head struct{ ID, Queue string }
		if json.Unmarshal(l.Put, &head) != nil || head.ID == "" {
			head.ID = brokenID(line)
		}
		f.place(head.ID, orDefault(head.Queue), where)
	}
}

func (f *FileDeadLetters) place(id, queue string, where span) {
	if e := f.index.get(id); e != nil {
		f.live -= e.value.n
	}
	f.index.put(id, queue, where)
	f.live += where.n
}

func (f *FileDeadLetters) drop(id string) {
	if e := f.index.get(id); e != nil {
		f.live -= e.value.n
		f.index.remove(id)
	}
}

// brokenID returns an id that is the same each time the line is read.
func brokenID(line []byte) string {
	sum := sha256.Sum256(line)
	return "broken_" + hex.EncodeToString(sum[:12])
}

// Close closes the file and releases its lock. Calls after it return os.ErrClosed.
func (f *FileDeadLetters) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return nil
	}
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	err = errors.Join(err, f.lock.Close())
	f.lock, f.err = nil, os.ErrClosed
	return err
}

// Put implements DeadLetters.
func (f *FileDeadLetters) Put(_ context.Context, d DeadLetter) (string, error) {
	d = stamped(d)
	letter, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("job: dead letter of %s: %w", d.Job.JobID, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return d.ID, f.write(fileLine{Put: letter})
}

// Remove implements DeadLetters.
func (f *FileDeadLetters) Remove(_ context.Context, ids ...string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var known []string
	for _, id := range ids {
		if f.index.get(id) != nil {
			known = append(known, id)
		}
	}
	if len(known) == 0 {
		return 0, f.err
	}
	before := f.index.len("")
	err := f.write(fileLine{Remove: known})
	return before - f.index.len(""), err
}

// write appends a line, waits until it is on the disk, and updates the index. It cuts off a line
// that it could not write.
func (f *FileDeadLetters) write(l fileLine) error {
	if f.err != nil {
		return fmt.Errorf("job: dead letters %s: %w", f.path, f.err)
	}
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	_, err = f.file.WriteAt(line, f.size)
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		if cut := f.file.Truncate(f.size); cut != nil {
			f.err = fmt.Errorf("an unfinished line could not be cut off: %w", cut)
		}
		return fmt.Errorf("job: dead letters %s: %w", f.path, err)
	}
	f.apply(line)
	if removed := f.size - f.live; removed > max(maxRemoved, f.live) && f.size >= f.compactAt {
		f.err = f.compact()
	}
	return nil
}

// Page implements DeadLetters.
func (f *FileDeadLetters) Page(_ context.Context, queue, cursor string, limit int) ([]DeadLetter, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, next, err := f.index.page(queue, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	page := make([]DeadLetter, len(entries))
	for i := range entries {
		if page[i], err = f.read(&entries[i]); err != nil {
			return nil, "", err
		}
	}
	return page, next, nil
}

// Get implements DeadLetters.
func (f *FileDeadLetters) Get(_ context.Context, id string) (DeadLetter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.index.get(id)
	if e == nil {
		return DeadLetter{}, fmt.Errorf("%w: %s", ErrNoDeadLetter, id)
	}
	return f.read(e)
}

func (f *FileDeadLetters) read(e *indexEntry[span]) (DeadLetter, error) {
	line := make([]byte, e.value.n)
	if _, err := f.file.ReadAt(line, e.value.at); err != nil {
		return DeadLetter{}, fmt.Errorf("job: dead letters %s: %w", f.path, err)
	}
	var l fileLine
	letter := bytes.TrimSuffix(line, []byte("\n"))
	if json.Unmarshal(line, &l) == nil && l.Put != nil {
		letter = l.Put
	}
	d := DecodeDeadLetter(letter)
	d.ID, d.Queue = e.id, e.queue
	return d, nil
}

// Len implements DeadLetters.
func (f *FileDeadLetters) Len(_ context.Context, queue string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index.len(queue), nil
}

// compact writes the letters that are left into a new file and renames that to the old one. A
// failure before the rename leaves the old file in use and is no error. After a failure behind it,
// the store cannot go on.
func (f *FileDeadLetters) compact() error {
	next, spans, err := f.copyLive(f.path + ".new")
	if err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil { // the old file is whole, only larger than it need be
		f.compactAt = 2 * f.size
		return nil
	}
	f.file.Close() // its name is gone and its live letters were copied
	f.file, f.size = next, 0
	for i := range f.index.entries {
		f.index.entries[i].value = spans[i]
		f.size += spans[i].n
	}
	f.live, f.compactAt = f.size, 0
	return syncDir(filepath.Dir(f.path))
}

// copyLive copies the lines of the letters that are left into a new file, waits until it is on the
// disk, and returns the place of each entry's line in it.
func (f *FileDeadLetters) copyLive(path string) (_ *os.File, spans []span, err error) {
	next, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			next.Close()
			os.Remove(path)
		}
	}()
	out := bufio.NewWriter(next)
	spans = make([]span, len(f.index.entries))
	var size int64
	for i, e := range f.index.entries {
		if e.removed {
			continue
		}
		if _, err := io.Copy(out, io.NewSectionReader(f.file, e.value.at, e.value.n)); err != nil {
			return nil, nil, err
		}
		spans[i] = span{size, e.value.n}
		size += e.value.n
	}
	if err := out.Flush(); err != nil {
		return nil, nil, err
	}
	return next, spans, next.Sync()
}

// syncDir puts a new name in a directory on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
