package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/taskd-go/task/job"
)

// A ledger counts what became of a worker's jobs. Its methods are safe for concurrent use.
type ledger struct {
	out io.Writer

	mu sync.Mutex
	n  totals
}

// totals are ends of deliveries: a job that is tried again is counted each time.
type totals struct {
	Done      int `json:"done"`      // also what a layer skipped or a handler discarded
	Again     int `json:"again"`     // failed, and tried again later
	Dead      int `json:"dead"`      // a dead letter now
	GaveBack  int `json:"gaveBack"`  // interrupted or deferred, without having cost an attempt
	Cancelled int `json:"cancelled"` // stopped by taskd queue cancel
	Lost      int `json:"lost"`      // another worker may have it
}

func newLedger(out io.Writer) *ledger { return &ledger{out: out} }

func (t *ledger) event(e job.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(e.Err, job.ErrCancelled):
		t.n.Cancelled++
	case e.Kind == job.EventSucceeded, e.Kind == job.EventDiscarded, e.Kind == job.EventSkipped:
		t.n.Done++
	case e.Kind == job.EventRequeued:
		t.n.Again++
	case e.Kind == job.EventDead:
		t.n.Dead++
	case e.Kind == job.EventDeferred:
		t.n.GaveBack++
	case e.Kind == job.EventUnsettled:
		t.n.Lost++
	}
}

func (t *ledger) totals() totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

func (t *ledger) String() string {
	n := t.totals()
	return fmt.Sprintf("%d done, %d to be tried again, %d dead, %d given back, %d cancelled, %d lost", n.Done, n.Again, n.Dead, n.GaveBack, n.Cancelled, n.Lost)
}

// show prints the counts now and then while they change, over one line on a terminal, and at the end, which is stop.
func (t *ledger) show() (stop func()) {
	every, begin, end := 10*time.Second, "", "\n"
	if terminal(t.out) > 0 {
		every, begin, end = 500*time.Millisecond, "\r\x1b[K", ""
	}
	shown := totals{}
	stopPrinting := periodically(every, func() bool {
		if n := t.totals(); n != shown {
			shown = n
			fmt.Fprint(t.out, begin, t, end)
		}
		return true
	})
	return func() {
		stopPrinting()
		fmt.Fprint(t.out, begin, t, "\n")
	}
}
