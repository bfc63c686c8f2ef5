package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/taskd-go/task"
)

const (
	busyLimit    = 200 * time.Millisecond // how long to look for a worker that runs a task
	restartLimit = 30 * time.Second       // how long to wait for the killed worker's successor
)

// A killing is the end of one worker by SIGKILL, and what followed. Its fields are read after wait.
type killing struct {
	pool *task.Task
	done chan struct{}

	old, successor task.WorkerStatus // old as it was when it was killed
	took           time.Duration     // until the successor accepted
	err            error
}

// killOne waits for begin, then kills a worker and waits for its successor, unless ctx ends.
func killOne(ctx context.Context, pool *task.Task, begin <-chan struct{}) *killing {
	k := &killing{pool: pool, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		select {
		case <-begin:
			k.err = k.run(ctx)
		case <-ctx.Done():
			k.err = ctx.Err()
		}
	}()
	return k
}

func (k *killing) wait() {
	if k != nil {
		<-k.done
	}
}

func (k *killing) run(ctx context.Context) error {
	busy := func(row task.WorkerStatus) bool { return row.PID > 0 && row.Running > 0 }
	alive := func(row task.WorkerStatus) bool { return row.PID > 0 }
	var ok bool
	if k.old, ok = k.find(ctx, busyLimit, busy); !ok {
		if k.old, ok = k.find(ctx, busyLimit, alive); !ok {
			return errors.New("no worker is there to be killed")
		}
	}
	if err := syscall.Kill(k.old.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill worker %d, pid %d: %w", k.old.Index, k.old.PID, err)
	}
	killed := time.Now()
	k.successor, ok = k.find(ctx, restartLimit, func(row task.WorkerStatus) bool {
		return row.Index == k.old.Index && row.PID != k.old.PID && row.Accepting
	})
	if !ok {
		return fmt.Errorf("worker %d, pid %d, was killed, and no successor accepted within %s",
			k.old.Index, k.old.PID, restartLimit)
	}
	k.took = time.Since(killed)
	return nil
}

// find looks at the workers until one fits. A task may take less than a millisecond, so it looks
// often.
func (k *killing) find(ctx context.Context, limit time.Duration, fits func(task.WorkerStatus) bool) (
	row task.WorkerStatus, ok bool,
) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for {
		for _, row := range k.pool.Status() {
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
