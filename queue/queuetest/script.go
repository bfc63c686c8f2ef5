package queuetest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var quiet = slog.New(slog.DiscardHandler)

// A scripted job is a Go job that does what the test's script for it says.
type scripted struct {
	Script int64  `json:"script"`
	Name   string `json:"name"`
}

// A script is shared by a test and the scripted jobs that carry its number: a job is rebuilt from JSON and can hold
// nothing else of the test.
type script struct {
	id      int64
	handle  func(ctx context.Context, name string) error
	tries   int
	backoff func(attempt int) time.Duration
	onFail  func(ctx context.Context, err error)
	layers  []job.Middleware

	mu       sync.Mutex
	runs     []string
	backoffs []int
	fails    []error
}

var (
	scripts    sync.Map
	lastScript atomic.Int64
)

func newScript(s *stage, sc *script) *script {
	sc.id = lastScript.Add(1)
	scripts.Store(sc.id, sc)
	s.Cleanup(func() { scripts.Delete(sc.id) })
	return sc
}

func (sc *script) job(name string) scripted { return scripted{sc.id, name} }

func (sc *script) ran() []string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]string(nil), sc.runs...)
}

func (sc *script) failures() []error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]error(nil), sc.fails...)
}

func (j scripted) script() *script {
	sc, ok := scripts.Load(j.Script)
	if !ok {
		return &script{tries: 5}
	}
	return sc.(*script)
}

func (scripted) JobType() string { return "scripted" }

func (j scripted) Handle(ctx context.Context) error {
	sc := j.script()
	sc.mu.Lock()
	sc.runs = append(sc.runs, j.Name)
	sc.mu.Unlock()
	if sc.handle == nil {
		return nil
	}
	return sc.handle(ctx, j.Name)
}

func (j scripted) Tries() int {
	if n := j.script().tries; n != 0 {
		return n
	}
	return 5
}

func (j scripted) Backoff(attempt int) time.Duration {
	sc := j.script()
	sc.mu.Lock()
	sc.backoffs = append(sc.backoffs, attempt)
	sc.mu.Unlock()
	if sc.backoff == nil {
		return 0
	}
	return sc.backoff(attempt)
}

func (j scripted) Failed(ctx context.Context, err error) {
	sc := j.script()
	sc.mu.Lock()
	sc.fails = append(sc.fails, err)
	sc.mu.Unlock()
	if sc.onFail != nil {
		sc.onFail(ctx, err)
	}
}

func (j scripted) Middleware() []job.Middleware { return j.script().layers }

var scriptedHandlers = []job.Handler{queue.HandlerFor[scripted]()}

// A puppet is a worker whose one job does not end before the test says so.
type puppet struct {
	s      *stage
	w      *queue.Worker
	events chan job.Event
	took   chan string // the name of the job that began
	answer chan error
	wait   func() error // for the present ProcessOne
}

func (s *stage) puppet(opts ...queue.WorkerOption) *puppet {
	p := &puppet{s: s, took: make(chan string, 1), answer: make(chan error), events: make(chan job.Event, 100)}
	reg, _ := job.NewRegistry(scriptedHandlers...)
	own := []queue.WorkerOption{
		queue.Lease(300 * time.Second),
		queue.Runner(&job.Runner{Logger: quiet, OnEvent: func(ev job.Event) { p.events <- ev }}),
	}
	p.w = queue.NewWorker(s.open(), reg, append(own, opts...)...)
	return p
}

type puppetKey struct{}

// held is the handle of a script whose jobs end when the puppet that runs them is told so.
func held(ctx context.Context, name string) error {
	p := ctx.Value(puppetKey{}).(*puppet)
	p.took <- name
	return <-p.answer
}

// claim lets the worker take one job and returns its name, "" if there was none.
func (p *puppet) claim() string {
	p.s.Helper()
	none := make(chan struct{})
	p.wait = p.s.start(func() error {
		took, err := p.w.ProcessOne(context.WithValue(context.WithoutCancel(p.s.Context()), puppetKey{}, p))
		if !took {
			close(none)
		}
		return err
	})
	select {
	case name := <-p.took:
		return name
	case <-none:
		if err := p.wait(); err != nil {
			p.s.Fatalf("ProcessOne: %v", err)
		}
		return ""
	case <-time.After(limit):
		p.s.Fatal("ProcessOne neither took a job nor returned")
		return ""
	}
}

// end lets the job end and waits until that is stored.
func (p *puppet) end(err error) {
	p.s.Helper()
	p.answer <- err
	if err := p.wait(); err != nil {
		p.s.Fatalf("ProcessOne: %v", err)
	}
}

// leave is what a worker does that is killed: it never answers. The test's end lets its goroutine go.
func (p *puppet) leave() {
	p.s.Cleanup(func() {
		select {
		case p.answer <- errors.New("late"):
		default:
		}
	})
}

// event waits for an event of that kind.
func (p *puppet) event(kind job.EventKind) job.Event {
	p.s.Helper()
	for {
		if ev := receive(p.s, p.events, string(kind)); ev.Kind == kind {
			return ev
		}
	}
}
