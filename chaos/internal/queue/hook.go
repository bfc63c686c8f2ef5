package queue

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/taskd-go/task/internal/sqltest"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// A stepHook stops a worker at the first statement that gets to the step. Until the worker goes on,
// it takes no second job.
type stepHook struct {
	step         step
	jobs, failed string                   // tables
	running      func() bool              // reports whether the job has begun
	wait         func() (answerLost bool) // returns when the worker may go on
	took         atomic.Bool              // the worker has a job
	stopped      atomic.Bool
	released     atomic.Bool
}

func newStepHook(s step, t sqlqueue.Tables, running func() bool, wait func() (answerLost bool)) *stepHook {
	return &stepHook{step: s, jobs: t.Prefix + "jobs", failed: t.Prefix + "failed_jobs", running: running, wait: wait}
}

var (
	errAnswerLost = errors.New("the database was killed before its answer arrived")
	errOneJob     = errors.New("the worker is stopped at a step and takes no second job")
)

func (h *stepHook) hooks() sqltest.Hooks { return sqltest.Hooks{Before: h.before, After: h.after} }

// kind returns what a statement writes. A transaction that buries deletes the job first.
func (h *stepHook) kind(c *sqltest.Call) write {
	switch s := c.Statement; {
	case strings.Contains(s, "INSERT INTO "+h.failed+" "):
		return burying
	case strings.Contains(s, "DELETE FROM "+h.jobs+" "):
		return completing
	case strings.Contains(s, "attempts = attempts + "):
		return claiming
	case strings.Contains(s, "reserved_token = NULL"):
		if len(c.Args) > 0 && c.Args[0].Value == int64(1) { // the attempts that are subtracted
			return givingBack
		}
		return requeueing
	case strings.Contains(s, "SET lease_until"):
		return renewing
	}
	return noWrite
}

// before refuses a second job, rather than let its claim wait: the lease of a job counts from when
// its claim is sent.
func (h *stepHook) before(_ context.Context, c *sqltest.Call) error {
	kind := h.kind(c)
	if kind == claiming && h.took.Load() && !h.released.Load() {
		return errOneJob
	}
	if kind != h.step.write || kind == noWrite {
		return nil
	}
	if h.step.stage == unsent || h.step.stage == uncommitted && c.Tx == nil {
		return h.stop()
	}
	return nil
}

func (h *stepHook) after(_ context.Context, c *sqltest.Call) error {
	kind := h.kind(c)
	switch {
	case c.Rows == 0:
	case kind == claiming:
		h.took.Store(true)
	case kind == givingBack: // it did not run, and comes again
		h.took.Store(false)
	}
	reached := h.step.write != noWrite && kind == h.step.write && c.Rows > 0
	switch {
	case h.step.stage == uncommitted && reached && c.Tx != nil:
		return h.stop()
	case h.step.stage != committed:
	case reached && c.Tx == nil, c.Statement == "COMMIT" && c.Tx.Note == h:
		return h.stop()
	case reached:
		c.Tx.Note = h
	}
	return nil
}

// stop waits at the step, once. A lease can be renewed before its job has begun: that is not the
// step.
func (h *stepHook) stop() error {
	if h.step.write == renewing && !h.running() || !h.stopped.CompareAndSwap(false, true) {
		return nil
	}
	defer h.released.Store(true)
	if h.wait() {
		return errAnswerLost
	}
	return nil
}
