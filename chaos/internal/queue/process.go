package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
)

// A workerProcess is a worker process of a workload.
type workerProcess struct {
	spec  worker
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// start starts a worker with so many jobs at once. It stops at the step, unless that is "".
func (w *workload) start(step string, jobs int) (*workerProcess, error) {
	w.mu.Lock()
	w.started++
	name := fmt.Sprintf("w%d", w.started)
	w.mu.Unlock()
	p := &workerProcess{ended: make(chan struct{}), spec: worker{
		Name: name, Dir: w.dir, Prefix: w.at.tables.Prefix, Gate: w.gatePath(),
		Step: step, Jobs: jobs, Lease: w.lease, Verbose: w.verbose,
	}}
	if err := os.Mkdir(p.spec.poolDir(), 0o700); err != nil {
		return nil, err
	}
	text, err := json.Marshal(&p.spec)
	if err != nil {
		return nil, err
	}
	self, err := cli.Executable()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(self, workerCommand, string(text))
	p.cmd.Dir = w.dir // the guard of the run finds it there
	p.cmd.Env = append(os.Environ(), dsnVariable+"="+w.at.dsn, "TMPDIR="+w.dir)
	if w.verbose {
		p.cmd.Stderr = os.Stderr
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal from the terminal is for chaos
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workers = append(w.workers, p)
	return p, nil
}

func (p *workerProcess) pid() int { return p.cmd.Process.Pid }

// kill kills the worker but not its pool, and waits for its end.
func (p *workerProcess) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
	p.stdin.Close()
}

// stop lets the worker drain. It waits until the worker's pool is ready: before that, a signal just
// ends the process.
func (p *workerProcess) stop(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, err := p.children(ctx); err != nil && ctx.Err() == nil; _, err = p.children(ctx) {
		cli.Pause(ctx, 20*time.Millisecond)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("worker %s did not end within %s", p.spec.Name, limit)
	}
	p.stdin.Close()
	if code := p.cmd.ProcessState.ExitCode(); code != cli.ExitOK {
		return fmt.Errorf("worker %s ended with %s", p.spec.Name, p.cmd.ProcessState)
	}
	return nil
}

// children returns the processes of the worker's pool.
func (p *workerProcess) children(ctx context.Context) (pids []int, err error) {
	client, err := task.Dial(ctx, p.spec.pool())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, row := range client.Status() {
		if row.PID > 0 {
			pids = append(pids, row.PID)
		}
	}
	if len(pids) == 0 {
		return nil, errors.New("its pool has no process")
	}
	return pids, nil
}

// killWorker kills a worker and records it.
func (w *workload) killWorker(p *workerProcess) {
	defer w.recordKill(kill{target: targetWorker, worker: p.spec.Name, pid: p.pid()})()
	p.kill()
}

// killChild kills a process of a worker's pool and records it.
func (w *workload) killChild(p *workerProcess, pid int) error {
	defer w.recordKill(kill{target: targetChild, worker: p.spec.Name, pid: pid})()
	return cli.Signal(pid, syscall.SIGKILL)
}

// stopLimit is how long a worker without jobs may take to end.
const stopLimit = time.Minute

// stopAll stops the workers that run.
func (w *workload) stopAll(ctx context.Context) {
	for _, p := range w.workers {
		select {
		case <-p.ended:
			p.stdin.Close()
			if !w.killed(p.spec.Name) {
				w.problem("worker %s ended by itself: %s", p.spec.Name, p.cmd.ProcessState)
			}
			continue
		default:
		}
		if err := p.stop(ctx, stopLimit); err != nil {
			w.problem("%v", err)
		}
	}
}

func (w *workload) killed(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.kills, func(k kill) bool { return k.target == targetWorker && k.worker == worker })
}
