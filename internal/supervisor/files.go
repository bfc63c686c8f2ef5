package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/taskd-go/task/internal/sys"
)

// SocketPath is where the worker of an index listens.
func SocketPath(dir, name string, index int) string {
	return filepath.Join(dir, workerSocket(name, strconv.Itoa(index)))
}

// PoolSocketPath is where another process attaches to a pool.
func PoolSocketPath(dir, name string) string { return filepath.Join(dir, name+".Pool.sock") }

// LockPath is the file whose lock says who has a pool's name.
func LockPath(dir, name string) string { return filepath.Join(dir, name+".Pool.lock") }

func workerSocket(name, index string) string { return name + ".TaskWorker." + index + ".sock" }

// files are those of one pool: the lock that says whose the name is, and the sockets. It removes
// only what it has bound itself.
type files struct {
	dir, name string
	lock      *os.File
	bound     map[string]sys.FileID // by path
	gone      <-chan string         // base names of files that were removed
	stopWatch func()
}

// takeName takes the pool's name and removes the sockets that a dead pool of this name left behind.
func takeName(dir, name string) (*files, error) {
	lock, holder, err := sys.Lock(LockPath(dir, name))
	if errors.Is(err, sys.ErrLocked) {
		who := ""
		if holder == os.Getpid() {
			who = ", this very process: each of its pools needs a name of its own"
		}
		return nil, fmt.Errorf("the pool name %q in %s is in use by pid %d%s: %w", name, dir, holder, who, sys.ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("take the pool name %q in %s: %w", name, dir, err)
	}
	f := &files{dir: dir, name: name, lock: lock, bound: make(map[string]sys.FileID), stopWatch: func() {}}
	if err := f.removeStale(); err != nil {
		f.release()
		return nil, err
	}
	return f, nil
}

func (f *files) removeStale() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("look for old sockets: %w", err)
	}
	for _, e := range entries {
		if _, ours := f.index(e.Name()); !ours || e.Type() != os.ModeSocket {
			continue
		}
		if err := os.Remove(filepath.Join(f.dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove an old socket: %w", err)
		}
	}
	return nil
}

// index says which worker's socket a base name is; -1: the pool's. ok is false for a file that is
// no socket of this pool.
func (f *files) index(base string) (index int, ok bool) {
	if base == filepath.Base(PoolSocketPath(f.dir, f.name)) {
		return -1, true
	}
	n, found := strings.CutPrefix(base, f.name+".TaskWorker.")
	n, suffix := strings.CutSuffix(n, ".sock")
	index, err := strconv.Atoi(n)
	ok = found && suffix && err == nil && index >= 0 && strconv.Itoa(index) == n
	return index, ok
}

// listen binds a socket and remembers that its file is ours.
func (f *files) listen(path string) (*net.UnixListener, error) {
	l, err := sys.Listen(path)
	if err != nil {
		return nil, err
	}
	id, err := sys.IDOf(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	f.bound[path] = id
	return l, nil
}

// watch begins to notice that socket files are removed. A pool does without it where the system has
// no watch to give.
func (f *files) watch(workers int) error {
	names := []string{filepath.Base(PoolSocketPath(f.dir, f.name))}
	for i := range workers {
		names = append(names, workerSocket(f.name, strconv.Itoa(i)))
	}
	gone, stop, err := sys.WatchGone(f.dir, names)
	if err != nil {
		return err
	}
	f.gone, f.stopWatch = gone, stop
	return nil
}

// unlink removes the sockets that are still ours.
func (f *files) unlink() {
	for path, id := range f.bound {
		if now, err := sys.IDOf(path); err == nil && now == id {
			_ = os.Remove(path)
		}
		delete(f.bound, path)
	}
}

// release gives the name back. The lock file goes before the lock does; who opened it in between
// finds that the path is another file and tries again.
func (f *files) release() {
	f.stopWatch()
	f.unlink()
	_ = os.Remove(f.lock.Name())
	f.lock.Close()
}
