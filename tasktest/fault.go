package tasktest

import (
	"errors"
	"slices"
	"sync"

	"github.com/taskd-go/task/worker"
)

// A Fault makes a worker simulate a crash at one step of a call.
type Fault int

const (
	// DieBeforeAccepting: the worker dies before it reads the package. The caller gets
	// ErrSockTimeout and NotRun.
	DieBeforeAccepting Fault = iota
	// DieAfterAccepting: the worker dies when the package holds a slot and its task has not begun.
	// The caller gets ErrSockTimeout and MayHaveRun, and the task counts as lost.
	DieAfterAccepting
	// DieInAnswer: the worker dies when it has sent half of the answer. The caller gets
	// ErrSockTimeout and MayHaveRun. A task called by Sync has run, and counts as success or fail;
	// a task called by Async has not begun, and counts as lost.
	DieInAnswer
)

// errStart is the error of a start that FailStarts makes fail.
var errStart = errors.New("OnWorkerStart: this start was to fail")

// faults holds the faults that wait for their call.
type faults struct {
	mu      sync.Mutex
	waiting []fault
	starts  int
}

type fault struct {
	Fault
	task string
}

// Fail makes the worker that takes the next call of the task with this name simulate f. An empty
// name matches any task. Each Fail applies to one call. If several match a call, the first one
// applies.
func (p *Pool) Fail(f Fault, task string) {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.waiting = append(p.faults.waiting, fault{f, task})
}

// FailStarts makes the next n starts of a worker fail as if OnWorkerStart returned an error.
func (p *Pool) FailStarts(n int) {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.starts = n
}

// take returns the first fault that waits for a call of task, or worker.NoFault.
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
