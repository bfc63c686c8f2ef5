package queuecmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/pooljob"
)

// killAfter is how long a job's worker process outlives the time limit of the job.
const killAfter = 5 * time.Second

// A jobPool runs jobs in worker processes.
type jobPool struct {
	cfg    task.Config
	remote *pooljob.Remote
	types  []string
}

// newJobPool registers handlers in this process. In a worker process it does not return.
func newJobPool(handlers *job.Registry, processes int, lease time.Duration) *jobPool {
	p := &jobPool{
		// A worker process whose parent died drains. It must be gone before the lease of its job
		// lapses.
		cfg: task.Config{
			ServerName: "taskd-queue", WorkerNum: processes, MaxRunningNum: 1, DrainTimeout: lease / 2,
		},
		remote: pooljob.Register(handlers),
		types:  handlers.Types(),
	}
	task.RunIfWorker(p.cfg)
	return p
}

// start starts the processes and returns handlers that run jobs there. stop ends the processes.
func (p *jobPool) start(ctx context.Context, heartbeat func(path string) (stop func(), err error)) (
	handlers *job.Registry, stop func() error, err error) {
	dir, err := shortTempDir()
	if err != nil {
		return nil, nil, err
	}
	p.cfg.TempDir = dir
	stopHeartbeat, err := heartbeat(filepath.Join(dir, "heartbeat"))
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	pool, err := task.New(p.cfg)
	if err == nil {
		err = pool.Start(ctx)
	}
	if err != nil {
		stopHeartbeat()
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killAfter)
		defer cancel()
		err := pool.Shutdown(ctx)
		stopHeartbeat()
		return errors.Join(err, os.RemoveAll(dir))
	}
	handlers, err = p.handlers(pool)
	return handlers, stop, err
}

func (p *jobPool) handlers(pool *task.Task) (*job.Registry, error) {
	carry := func(ctx context.Context, e job.Envelope) job.Result {
		var hard time.Duration
		if limit, ok := ctx.Deadline(); ok {
			hard = time.Until(limit) + killAfter
		}
		h, err := p.remote.Handlers(pool, hard).Require(e.JobType)
		if err != nil {
			return job.Fail(err)
		}
		return h.Handle(ctx, e)
	}
	var all []job.Handler
	for _, name := range p.types {
		all = append(all, job.Func(name, carry))
	}
	return job.NewRegistry(all...)
}

// shortTempDir makes a folder in which the paths of sockets stay under their limit of 100 bytes,
// even if TMPDIR is long.
func shortTempDir() (string, error) {
	if dir, err := os.MkdirTemp("/tmp", "taskd-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "taskd-")
}
