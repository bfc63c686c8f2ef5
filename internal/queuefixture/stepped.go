package queuefixture

import (
	"context"
	"errors"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// A Stepped worker takes one job at a time, which does not end before the test says so.
type Stepped struct {
	s      *Fixture
	W      *queue.Worker
	events chan job.Event
	took   chan string // the name of the job that began
	answer chan error
	wait   func() error // for the present ProcessOne
}

// Stepped returns a stepped worker with a lease of 300 s for jobs of a script that does Held.
func (s *Fixture) Stepped(opts ...queue.WorkerOption) *Stepped {
	p := &Stepped{s: s, took: make(chan string, 1), answer: make(chan error), events: make(chan job.Event, 100)}
	reg, _ := job.NewRegistry(ScriptedHandlers...)
	own := []queue.WorkerOption{
		queue.Lease(300 * time.Second),
		queue.Runner(&job.Runner{Logger: Quiet, OnEvent: func(ev job.Event) { p.events <- ev }}),
	}
	p.W = queue.NewWorker(s.Open(), reg, append(own, opts...)...)
	return p
}

type steppedKey struct{}

// Held lets a job of a stepped worker wait for its End.
func Held(ctx context.Context, name string) error {
	p := ctx.Value(steppedKey{}).(*Stepped)
	p.took <- name
	return <-p.answer
}

// Claim lets the worker take one job and returns its name, "" if there was none.
func (p *Stepped) Claim() string {
	p.s.Helper()
	none := make(chan struct{})
	p.wait = p.s.Start(func() error {
		took, err := p.W.ProcessOne(context.WithValue(context.WithoutCancel(p.s.Context()), steppedKey{}, p))
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
	case <-time.After(Limit):
		p.s.Fatal("ProcessOne neither took a job nor returned")
		return ""
	}
}

// End lets the job end and waits until that is stored.
func (p *Stepped) End(err error) {
	p.s.Helper()
	p.answer <- err
	if err := p.wait(); err != nil {
		p.s.Fatalf("ProcessOne: %v", err)
	}
}

// Leave is what a killed worker does: it never answers. The test's end lets its goroutine go.
func (p *Stepped) Leave() {
	p.s.Cleanup(func() {
		select {
		case p.answer <- errors.New("late"):
		default:
		}
	})
}

// Event waits for an event of that kind.
func (p *Stepped) Event(kind job.EventKind) job.Event {
	p.s.Helper()
	for {
		if ev := Receive(p.s, p.events, string(kind)); ev.Kind == kind {
			return ev
		}
	}
}
