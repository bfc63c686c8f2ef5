package task

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/sys"
)

// entry says whether this process is a worker that has yet to run.
var entry workerEntry

type workerEntry struct {
	mu     sync.Mutex
	server string // the pool whose worker this process is
	worker bool
	open   bool // the worker has not run yet
	asked  bool // RunIfWorker was called
}

// init removes the marker from the environment, makes our descriptors close-on-exec, and closes
// descriptors that leaked into this process. All of that must happen before any package that
// imports this one is initialised.
func init() {
	marker, ok := os.LookupEnv(control.EnvMarker)
	if !ok {
		return
	}
	os.Unsetenv(control.EnvMarker)
	version, server, ok := strings.Cut(marker, " ")
	if !ok || version != strconv.Itoa(control.Version) {
		return
	}
	sys.AdoptFiles(control.NumFDs)
	entry.server, entry.worker, entry.open = server, true, true
}

// IsWorker reports whether this process is a worker of some pool.
func IsWorker() bool { return entry.worker }

// RunIfWorker runs the worker and does not return, if the program was re-executed as a worker of
// one of the pools that cfgs describe, or of any pool if there are no cfgs. Otherwise it does
// nothing. Call it in TestMain, and at the beginning of a main that has side effects before it
// starts the pool. Without cfgs no OnWorkerStart and no OnException runs.
func RunIfWorker(cfgs ...Config) {
	entry.mu.Lock()
	entry.asked = true
	entry.mu.Unlock()
	if len(cfgs) == 0 {
		cfgs = []Config{{ServerName: entry.server}}
	}
	for _, cfg := range cfgs {
		cfg = cfg.withDefaults()
		if entry.matches(cfg.ServerName) {
			entry.run(cfg)
		}
	}
}

func (e *workerEntry) matches(server string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open && e.server == server
}

func (e *workerEntry) passed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

func (e *workerEntry) name() string { return e.server }

// run runs the worker and ends the process.
func (e *workerEntry) run(cfg Config) {
	e.mu.Lock()
	e.open = false
	e.mu.Unlock()
	os.Exit(runWorker(cfg))
}
