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

// SocketPath returns the path of the socket on which the worker of an index listens.
func SocketPath(dir, name string, index int) string {
	return filepath.Join(dir, workerSocket(name, strconv.Itoa(index)))
}

// poolSocketPath returns the path of the socket through which other processes attach to a pool.
func poolSocketPath(dir, name string) string { return filepath.Join(dir, name+".Pool.sock") }

// lockPath returns the path of the file whose lock reserves a pool's name.
func lockPath(dir, name string) string { return filepath.Join(dir, name+".Pool.lock") }

func workerSocket(name, index string) string { return name + ".TaskWorker." + index + ".sock" }

// files are the files of one pool: the lock that reserves its name, and the sockets. It removes
// only files that it made.
type files struct {
	dir, name string
	lock      *os.File
	bound     map[string]sys.FileID // by path
	gone      <-chan string         // base names of files that were removed
	stopWatch func()
}

// takeName reserves the pool's name and removes the sockets that a dead pool of this name left.
func takeName(dir, name string) (*files, error) {
	lock, holder, err := sys.Lock(lockPath(dir, name))
	if errors.Is(err, sys.ErrLocked) {
		who := ""
		if holder == os.Getpid() {
			who = ", this very process: each of its pools needs a name of its own"
		}
		return nil, fmt.Errorf(
			"the pool name %q in %s is in use by pid %d%s: %w",
			name,
			dir,
			holder,
			who,
			sys.ErrLocked,
		)
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

// index returns the index of the worker whose socket has this base name, -1 for the pool's socket.
// ok is false for a file that is no socket of this pool.
func (f *files) index(base string) (index int, ok bool) {
	if base == filepath.Base(poolSocketPath(f.dir, f.name)) {
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

// watch begins to report removed socket files. A pool works without that on a system that has no
// watch left.
func (f *files) watch(workers int) error {
	names := []string{filepath.Base(poolSocketPath(f.dir, f.name))}
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

// release removes the files and releases the name. It removes the lock file before it unlocks it: a
// process that opened it meanwhile finds another file under the path and tries again.
func (f *files) release() {
	f.stopWatch()
	f.unlink()
	_ = os.Remove(f.lock.Name())
	f.lock.Close()
}
