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
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// maxGarbage is how many bytes of removed letters a file may hold, or more while the others are more.
const maxGarbage = 1 << 20

// FileDeadLetters keeps dead letters in a file of JSON lines, one for each letter put and each removal. A call that
// returned without an error is on the disk. A line that a crash left unfinished is cut off when the file is opened;
// a line in the middle that cannot be read is kept and shown as a broken letter. Memory holds an
// index only.
//
// One process owns the file, by a lock on {path}.lock; it may use it from several goroutines.
type FileDeadLetters struct {
	path string
	lock *os.File

	mu    sync.Mutex
	file  *os.File
	size  int64
	live  int64 // bytes of the letters that are on the shelf
	shelf *shelf[span]
	err   error // why the file cannot be written any more

	compactAt int64 // the size before which compacting is not tried again after it failed
}

// A span is where a letter's line stands in the file, its newline included.
type span struct{ at, n int64 }

// fileLine is one line: what happened.
type fileLine struct {
	Put    json.RawMessage `json:"put,omitempty"`
	Remove []string        `json:"remove,omitempty"`
}

// OpenFileDeadLetters opens or creates the file at path, for its owner alone (mode 0600), in a directory that exists.
// It fails if another process has it open.
func OpenFileDeadLetters(path string) (*FileDeadLetters, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("job: dead letters: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("job: dead letters %s: another process has it open: %w", path, err)
	}
	f := &FileDeadLetters{path: path, lock: lock, shelf: newShelf[span]()}
	if err := f.load(); err != nil {
		f.Close()
		return nil, fmt.Errorf("job: dead letters %s: %w", path, err)
	}
	return f, nil
}

// load reads the index and repairs the end.
func (f *FileDeadLetters) load() (err error) {
	if f.file, err = os.OpenFile(f.path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	in := bufio.NewReader(f.file)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break // what has no newline was never acknowledged
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

// apply brings the index up to a line that stands at the file's end.
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
	if it := f.shelf.get(id); it != nil {
		f.live -= it.value.n
	}
	f.shelf.put(id, queue, where)
	f.live += where.n
}

func (f *FileDeadLetters) drop(id string) {
	if it := f.shelf.get(id); it != nil {
		f.live -= it.value.n
		f.shelf.remove(id)
	}
}

// brokenID is the same each time the line is read.
func brokenID(line []byte) string {
	sum := sha256.Sum256(line)
	return "broken_" + hex.EncodeToString(sum[:12])
}

// Close lets another process open the file. The store cannot be used after it.
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
		if f.shelf.get(id) != nil {
			known = append(known, id)
		}
	}
	if len(known) == 0 {
		return 0, f.err
	}
	before := f.shelf.len("")
	err := f.write(fileLine{Remove: known})
	return before - f.shelf.len(""), err
}

// write appends a line, waits until it is on the disk, and takes it into the index. A line that did not get there
// is cut off again.
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
	if garbage := f.size - f.live; garbage > max(maxGarbage, f.live) && f.size >= f.compactAt {
		f.err = f.compact()
	}
	return nil
}

// Page implements DeadLetters.
func (f *FileDeadLetters) Page(_ context.Context, queue, cursor string, limit int) ([]DeadLetter, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items, next, err := f.shelf.page(queue, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	page := make([]DeadLetter, len(items))
	for i := range items {
		if page[i], err = f.read(&items[i]); err != nil {
			return nil, "", err
		}
	}
	return page, next, nil
}

// Get implements DeadLetters.
func (f *FileDeadLetters) Get(_ context.Context, id string) (DeadLetter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	it := f.shelf.get(id)
	if it == nil {
		return DeadLetter{}, fmt.Errorf("%w: %s", ErrNoDeadLetter, id)
	}
	return f.read(it)
}

func (f *FileDeadLetters) read(it *item[span]) (DeadLetter, error) {
	line := make([]byte, it.value.n)
	if _, err := f.file.ReadAt(line, it.value.at); err != nil {
		return DeadLetter{}, fmt.Errorf("job: dead letters %s: %w", f.path, err)
	}
	var l fileLine
	letter := bytes.TrimSuffix(line, []byte("\n"))
	if json.Unmarshal(line, &l) == nil && l.Put != nil {
		letter = l.Put
	}
	d := DecodeDeadLetter(letter)
	d.ID, d.Queue = it.id, it.queue
	return d, nil
}

// Len implements DeadLetters.
func (f *FileDeadLetters) Len(_ context.Context, queue string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shelf.len(queue), nil
}
