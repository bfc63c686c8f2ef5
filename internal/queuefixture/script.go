package queuefixture

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// A Script says what the Scripted jobs that carry its number do, and keeps what they did. A job is
// rebuilt from JSON and can hold nothing else of the test.
type Script struct {
	Do      func(ctx context.Context, name string) error // nil: the job succeeds
	Times   int                                          // the job's Tries; 0: 5
	Wait    func(attempt int) time.Duration              // the job's Backoff; nil: 0
	OnFail  func(ctx context.Context, err error)         // called by the job's Failed
	Layers  []job.Middleware
	id      int64
	mu      sync.Mutex
	runs    []string
	asked   []int
	letters []error
}

var (
	scripts    sync.Map
	lastScript atomic.Int64
)

// NewScript makes a script known to its jobs until the end of the test.
func NewScript(s *Fixture, sc *Script) *Script {
	sc.id = lastScript.Add(1)
	scripts.Store(sc.id, sc)
	s.Cleanup(func() { scripts.Delete(sc.id) })
	return sc
}

// Job returns a job of the script.
func (sc *Script) Job(name string) Scripted { return Scripted{sc.id, name} }

// Ran returns the names of the jobs that ran.
func (sc *Script) Ran() []string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]string(nil), sc.runs...)
}

// Asked returns the attempts for which a Backoff was asked.
func (sc *Script) Asked() []int {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]int{}, sc.asked...)
}

// Failures returns the errors that Failed was called with.
func (sc *Script) Failures() []error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]error(nil), sc.letters...)
}

// A Scripted job does what its Script says.
type Scripted struct {
	Script int64  `json:"script"`
	Name   string `json:"name"`
}

// ScriptedHandlers handle Scripted jobs.
var ScriptedHandlers = []job.Handler{queue.HandlerFor[Scripted]()}

func (j Scripted) script() *Script {
	sc, ok := scripts.Load(j.Script)
	if !ok {
		return &Script{}
	}
	return sc.(*Script)
}

// JobType implements queue.Job.
func (Scripted) JobType() string { return "scripted" }

// Handle implements queue.Job.
func (j Scripted) Handle(ctx context.Context) error {
	sc := j.script()
	sc.mu.Lock()
	sc.runs = append(sc.runs, j.Name)
	sc.mu.Unlock()
	if sc.Do == nil {
		return nil
	}
	return sc.Do(ctx, j.Name)
}

// Tries is asked when the job is pushed.
func (j Scripted) Tries() int {
	if n := j.script().Times; n != 0 {
		return n
	}
	return 5
}

// Backoff is asked after a failure.
func (j Scripted) Backoff(attempt int) time.Duration {
	sc := j.script()
	sc.mu.Lock()
	sc.asked = append(sc.asked, attempt)
	sc.mu.Unlock()
	if sc.Wait == nil {
		return 0
	}
	return sc.Wait(attempt)
}

// Failed is called when the job is dead.
func (j Scripted) Failed(ctx context.Context, err error) {
	sc := j.script()
	sc.mu.Lock()
	sc.letters = append(sc.letters, err)
	sc.mu.Unlock()
	if sc.OnFail != nil {
		sc.OnFail(ctx, err)
	}
}

// Middleware returns the job's own layers.
func (j Scripted) Middleware() []job.Middleware { return j.script().Layers }
