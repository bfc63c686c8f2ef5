package task

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/sys"
)

// The gate is where a re-executed program becomes a worker instead of going on
// with its main. There is one per process, and it opens once.
var gate workerGate

type workerGate struct {
	mu     sync.Mutex
	server string // name of the pool that this process is a worker of
	worker bool
	open   bool // nobody has gone through yet
	asked  bool // RunIfWorker was called
}

// What must happen before main, and before any package that imports this one
// is initialised: the marker leaves the environment, our descriptors become
// close-on-exec, and descriptors that leaked into this process are closed.
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
	gate.server, gate.worker, gate.open = server, true, true
}

// IsWorker reports whether this process is a worker of some pool.
func IsWorker() bool { return gate.worker }

// RunIfWorker runs the worker, and does not return, in a program that was
// re-executed as a worker of one of the pools that cfgs describe; without cfgs,
// of any pool. Elsewhere it does nothing. It is for TestMain, and for programs
// that must branch off before they have effects.
func RunIfWorker(cfgs ...Config) {
	gate.mu.Lock()
	gate.asked = true
	gate.mu.Unlock()
	if len(cfgs) == 0 {
		cfgs = []Config{{ServerName: gate.server}}
	}
	for _, cfg := range cfgs {
		cfg = cfg.withDefaults()
		if gate.matches(cfg.ServerName) {
			gate.run(cfg)
		}
	}
}

func (g *workerGate) matches(server string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open && g.server == server
}

func (g *workerGate) passed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

func (g *workerGate) name() string { return g.server }

// run becomes the worker and ends the process with it.
func (g *workerGate) run(cfg Config) {
	g.mu.Lock()
	g.open = false
	g.mu.Unlock()
	os.Exit(runWorker(cfg))
}
