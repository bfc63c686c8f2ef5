package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task"
)

const (
	catchLimit = 200 * time.Millisecond // how long to look for a worker that has a task in its hands
	healLimit  = 10 * time.Second       // how long to wait for a killed worker's successor
)

// A victim is the worker that the demo kills. Its fields are read after wait.
type victim struct {
	pool *task.Task
	done sync.WaitGroup

	row    task.WorkerStatus // as it was when it was killed
	heir   task.WorkerStatus
	healed time.Duration
	err    error
}

// newVictim waits for begin, then kills a worker and looks for its successor, unless ctx ends.
func newVictim(ctx context.Context, pool *task.Task, begin <-chan struct{}) *victim {
	v := &victim{pool: pool}
	v.done.Go(func() {
		select {
		case <-begin:
			v.err = v.kill(ctx)
		case <-ctx.Done():
			v.err = ctx.Err()
		}
	})
	return v
}

func (v *victim) wait() { v.done.Wait() }

func (v *victim) kill(ctx context.Context) error {
	var ok bool
	if v.row, ok = v.find(ctx, catchLimit, func(row task.WorkerStatus) bool { return row.PID > 0 && row.Running > 0 }); !ok {
		if v.row, ok = v.find(ctx, catchLimit, func(row task.WorkerStatus) bool { return row.PID > 0 }); !ok {
			return errors.New("no worker is there to be killed")
		}
	}
	if err := syscall.Kill(v.row.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill worker %d, pid %d: %w", v.row.Index, v.row.PID, err)
	}
	killed := time.Now()
	v.heir, ok = v.find(ctx, healLimit, func(row task.WorkerStatus) bool {
		return row.Index == v.row.Index && row.PID != v.row.PID && row.Accepting
	})
	if !ok {
		return fmt.Errorf("worker %d, pid %d, was killed, and no successor accepted within %s", v.row.Index, v.row.PID, healLimit)
	}
	v.healed = time.Since(killed)
	return nil
}

// find looks at the workers until one fits. A task may take less than a millisecond, so it looks often.
func (v *victim) find(ctx context.Context, limit time.Duration, fits func(task.WorkerStatus) bool) (task.WorkerStatus, bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for {
		for _, row := range v.pool.Status() {
			if fits(row) {
				return row, true
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return task.WorkerStatus{}, false
		}
	}
}

// report tells what happened, and which files had to be sent again.
func (v *victim) report(out io.Writer, again []resent) {
	if v.err != nil {
		fmt.Fprintf(out, "kill: %v\n", v.err)
		return
	}
	fmt.Fprintf(out, "worker %d (pid %d) was killed with SIGKILL; its successor (pid %d) accepted after %s\n",
		v.row.Index, v.row.PID, v.heir.PID, v.healed.Round(time.Millisecond))
	if len(again) == 0 {
		fmt.Fprintln(out, "no file was lost: it had none in its hands")
		return
	}
	fmt.Fprintf(out, "%d calls were lost, and demo sent their files again; a digest changes nothing, so that is safe even where it may have run:\n", len(again))
	for _, r := range again {
		fmt.Fprintf(out, "  %s: %s, since %s\n", r.path, r.err.Delivery, r.err.Message)
	}
}
