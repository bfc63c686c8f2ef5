package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/pooljob"
	"github.com/taskd-go/task/queue"
)

// thumbnails are the jobs that run in a pool.
type thumbnails struct {
	pool     *task.Task
	handlers *job.Registry // as they run in the workers
	remote   *pooljob.Remote
	dir      string
}

func startPool(ctx context.Context) (*thumbnails, error) {
	handlers, err := job.NewRegistry(queue.HandlerFor[Thumbnail]())
	if err != nil {
		return nil, err
	}
	t := &thumbnails{handlers: handlers, remote: pooljob.Register(handlers)}
	cfg := task.Config{ServerName: "shop", WorkerNum: 2, MaxRunningNum: 1} // one job in each process
	task.RunIfWorker(cfg)                                                  // a worker process goes no further
	if cfg.TempDir, err = os.MkdirTemp("", "shop"); err != nil {
		return nil, err
	}
	t.dir = cfg.TempDir
	if t.pool, err = task.New(cfg); err != nil {
		return nil, err
	}
	return t, t.pool.Start(ctx)
}

func (t *thumbnails) close(ctx context.Context) error {
	return errors.Join(t.pool.Shutdown(context.WithoutCancel(ctx)), os.RemoveAll(t.dir))
}

// work runs the thumbnails in the pool, each for at most a minute.
func (t *thumbnails) work(ctx context.Context, q *queue.Queue) error {
	if _, err := q.Push(ctx, Thumbnail{Image: "cat.png"}); err != nil {
		return err
	}
	worker := queue.NewWorker(q, t.remote.Handlers(t.pool, time.Minute), queue.Concurrency(2), queue.Hooks(t.handlers))
	return workAll(ctx, q, worker)
}
