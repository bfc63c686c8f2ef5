package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/taskd-go/task/bench/internal/process"
)

// An idleWorker is a worker in another process.
type idleWorker struct {
	q      *running
	cmd    *exec.Cmd
	end    io.Closer
	stamps io.ReadCloser
	pushed int
}

// startIdle starts a worker, and returns when it has worked one job.
func startIdle(ctx context.Context, q *running) (*idleWorker, error) {
	cmd, end, err := process.Command(q.name)
	if err != nil {
		return nil, err
	}
	defer cmd.ExtraFiles[0].Close()
	cmd.Env = append(cmd.Env, envPlace+"="+q.place)
	w := &idleWorker{q: q, cmd: cmd, end: end}
	if w.stamps, err = cmd.StdoutPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		end.Close()
		return nil, err
	}
	if _, err := w.job(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// job returns the time from a push to the start of its job, on the wall clock.
func (w *idleWorker) job(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	w.pushed++
	if err := w.q.push(ctx, w.pushed); err != nil {
		return 0, err
	}
	var stamp [8]byte
	if _, err := io.ReadFull(w.stamps, stamp[:]); err != nil {
		return 0, fmt.Errorf("the worker's process: %w", err)
	}
	return time.Unix(0, int64(binary.LittleEndian.Uint64(stamp[:]))).Sub(begin.Round(0)), nil
}

func writeStamp(w io.Writer, t time.Time) {
	// If this fails, the reading program has ended, and this process ends with it.
	_, _ = w.Write(binary.LittleEndian.AppendUint64(nil, uint64(t.UnixNano())))
}

func (w *idleWorker) stop() {
	w.end.Close()
	_ = w.cmd.Wait() // the exit status does not matter
}

// envPlace is the environment variable with the place of the queue, for copies of this program.
const envPlace = "BENCH_QUEUE"

// serve works the named queue. It writes the start time of each job to standard output.
func serve(name string) error {
	ctx := context.Background()
	for _, c := range contenders() {
		if c.name != name {
			continue
		}
		s, err := c.open(ctx, os.Getenv(envPlace))
		if err != nil {
			return err
		}
		_, err = s.work(ctx, 0, func() { writeStamp(os.Stdout, time.Now()) })
		return err
	}
	return fmt.Errorf("there is no queue %q", name)
}
