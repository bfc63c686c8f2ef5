package tasktest

import (
	"errors"
	"slices"
	"sync"

	"github.com/taskd-go/task/worker"
)

// A Fault is a death of the worker that takes a call.
type Fault int

const (
	// DieBeforeAccepting: the worker has not read the package. The caller gets ErrSockTimeout, NotRun.
	DieBeforeAccepting Fault = iota
	// DieAfterAccepting: the package holds a slot and its task has not begun. The caller gets
	// ErrSockTimeout, MayHaveRun, and the task counts as lost.
	DieAfterAccepting
	// DieInAnswer: half of the answer is sent. The caller gets ErrSockTimeout, MayHaveRun. A task
	// called by Sync has run and counts as what it was; one called by Async has not begun, and counts as lost.
	DieInAnswer
)

// errStart is why a start failed that FailStarts asked for.
var errStart = errors.New("OnWorkerStart: this start was to fail")

// faults are those that wait for their call.
type faults struct {
	mu      sync.Mutex
	waiting []fault
	starts  int
}

type fault struct {
	Fault
	task string
}

// Fail makes the worker that takes the next call of task, a name, die of it; "": the next call
// of any task. Faults wait for their calls in the order in which they were asked for, each for one.
func (p *Pool) Fail(f Fault, task string) {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.waiting = append(p.faults.waiting, fault{f, task})
}

// FailStarts makes the next n starts of a worker fail as if OnWorkerStart had returned an error.
func (p *Pool) FailStarts(n int) {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.starts = n
}

// take returns the fault that waits for a call of task.
func (f *faults) take(task string) worker.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.waiting, func(w fault) bool { return w.task == "" || w.task == task })
	if i < 0 {
		return worker.NoFault
	}
	kind := f.waiting[i].Fault
	f.waiting = slices.Delete(f.waiting, i, i+1)
	switch kind {
	case DieBeforeAccepting:
		return worker.DieBeforeAccepting
	case DieAfterAccepting:
		return worker.DieAfterAccepting
	default:
		return worker.DieInAnswer
	}
}

func (f *faults) start() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.starts == 0 {
		return nil
	}
	f.starts--
	return errStart
}
