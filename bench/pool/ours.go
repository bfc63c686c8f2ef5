package main

import (
	"context"
	"os"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/bench/internal/measure"
)

// poolConfig has enough slots for the batches. Other settings are defaults.
var poolConfig = task.Config{WorkerNum: workers, MaxRunningNum: 256, ServerName: "bench"}

// slotWait is how long a call may wait for a slot.
const slotWait = 10 * time.Second

// Echo is a task that returns its payload.
type Echo struct{ Data []byte }

// Run returns the payload.
func (e Echo) Run(context.Context, task.Info) (any, error) { return e.Data, nil }

func openPool([]string) (session, error) {
	cfg := poolConfig
	dir, err := os.MkdirTemp("/tmp", "bench-")
	if err != nil {
		return session{}, err
	}
	cfg.TempDir = dir
	pool, err := task.New(cfg)
	if err == nil {
		err = pool.Start(context.Background())
	}
	if err != nil {
		os.RemoveAll(dir)
		return session{}, err
	}
	return session{
		caller: func(_ int, c measure.Case, payload []byte) (func() error, error) {
			return poolCall(pool, c, payload), nil
		},
		close: func() error {
			defer os.RemoveAll(dir)
			return pool.Shutdown(context.Background())
		},
	}, nil
}

func poolCall(pool *task.Task, c measure.Case, payload []byte) func() error {
	ctx := context.Background()
	switch c.Kind {
	case kindSync:
		return func() error {
			r, err := pool.Sync(ctx, Echo{payload})
			return checkResult(r, err, payload)
		}
	case kindAsync:
		return func() error {
			_, err := pool.Async(ctx, Echo{payload}, task.WithWait(slotWait))
			return err
		}
	}
	many := pool.SyncMany
	if c.Kind == kindAsyncMany {
		many = pool.AsyncMany
	}
	return func() error {
		rs := make([]task.Runner, batchSize)
		for i := range rs {
			rs[i] = Echo{payload}
		}
		for _, o := range many(ctx, rs, task.WithWait(slotWait)) {
			err := o.Err
			if c.Kind == kindSyncMany {
				err = checkResult(o.Result, err, payload)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func checkResult(r task.Result, err error, payload []byte) error {
	got, err := task.As[[]byte](r, err)
	if err != nil {
		return err
	}
	return same(got, payload)
}
