package sys

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

var errDirGone = errors.New("the directory is gone")

// A watch is the part of WatchGone that is the same on all systems.
type watch struct {
	dir   string
	names []string
	gone  chan string
	quit  chan struct{}
	once  sync.Once
	ended chan struct{}
}

func newWatch(dir string, names []string) *watch {
	return &watch{
		dir:   dir,
		names: slices.Clone(names),
		gone:  make(chan string),
		quit:  make(chan struct{}),
		ended: make(chan struct{}),
	}
}

// run sends the names that next returns, until next fails or stop is called.
func (w *watch) run(next func() ([]string, error)) {
	defer close(w.ended)
	for {
		names, err := next()
		for _, name := range names {
			select {
			case w.gone <- name:
			case <-w.quit:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// stop ends run and waits for its end. interrupt makes next return. stop may be called more than
// once.
func (w *watch) stop(interrupt func()) {
	w.once.Do(func() {
		close(w.quit)
		interrupt()
	})
	<-w.ended
}

// missing returns the names that dir does not contain.
func (w *watch) missing() (names []string) {
	for _, name := range w.names {
		if _, err := os.Lstat(filepath.Join(w.dir, name)); errors.Is(err, os.ErrNotExist) {
			names = append(names, name)
		}
	}
	return names
}
