package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
)

// A chaosProcess is a worker process of a plot.
type chaosProcess struct {
	spec  chaosWorker
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// start starts a worker of so many jobs at once that stops at a step, "" is none.
func (p *plot) start(step string, jobs int) (*chaosProcess, error) {
	p.mu.Lock()
	p.started++
	name := fmt.Sprintf("w%d", p.started)
	p.mu.Unlock()
	w := &chaosProcess{ended: make(chan struct{}), spec: chaosWorker{
		Name: name, Dir: p.dir, Prefix: p.at.tables.Prefix, Meeting: p.meetingPath(), Step: step, Jobs: jobs, Lease: p.lease, Verbose: p.verbose,
	}}
	if err := os.Mkdir(w.spec.poolDir(), 0o700); err != nil {
		return nil, err
	}
	text, err := json.Marshal(&w.spec)
	if err != nil {
		return nil, err
	}
	self, err := cli.Executable()
	if err != nil {
		return nil, err
	}
	w.cmd = exec.Command(self, chaosWorkerName, string(text))
	w.cmd.Env = append(os.Environ(), dsnVariable+"="+p.at.dsn, "TMPDIR="+p.dir)
	if p.verbose {
		w.cmd.Stderr = os.Stderr
	}
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for us
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = w.cmd.Wait()
		close(w.ended)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = append(p.workers, w)
	return w, nil
}

func (w *chaosProcess) pid() int { return w.cmd.Process.Pid }

// kill kills the worker, not its pool, and waits for its end.
func (w *chaosProcess) kill() {
	_ = w.cmd.Process.Kill() // it has ended already
	<-w.ended
	w.stdin.Close()
}

// stop lets the worker drain, once it is up: before that a signal would just end it.
func (w *chaosProcess) stop(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, err := w.children(ctx); err != nil && ctx.Err() == nil; _, err = w.children(ctx) {
		cli.Pause(ctx, 20*time.Millisecond)
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-w.ended:
	case <-ctx.Done():
		w.kill()
		return fmt.Errorf("worker %s did not end within %s", w.spec.Name, limit)
	}
	w.stdin.Close()
	if code := w.cmd.ProcessState.ExitCode(); code != cli.ExitOK {
		return fmt.Errorf("worker %s ended with %s", w.spec.Name, w.cmd.ProcessState)
	}
	return nil
}

// children are the processes of the worker's pool.
func (w *chaosProcess) children(ctx context.Context) (pids []int, err error) {
	client, err := task.Dial(ctx, w.spec.pool())
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
		return nil, errors.New("its pool has no process just now")
	}
	return pids, nil
}

// killWorker kills a worker and notes it.
func (p *plot) killWorker(w *chaosProcess) {
	defer p.strikes(kill{victim: victimWorker, worker: w.spec.Name, pid: w.pid()})()
	w.kill()
}

// killChild kills a process of a worker's pool and notes it.
func (p *plot) killChild(w *chaosProcess, pid int) error {
	defer p.strikes(kill{victim: victimChild, worker: w.spec.Name, pid: pid})()
	return cli.Signal(pid, syscall.SIGKILL)
}

// stopLimit is how long a worker without jobs may take to end.
const stopLimit = 15 * time.Second

// stopAll lets the workers that live end.
func (p *plot) stopAll(ctx context.Context) {
	for _, w := range p.workers {
		select {
		case <-w.ended:
			w.stdin.Close()
			if !p.killed(w.spec.Name) {
				p.offf("worker %s ended by itself: %s", w.spec.Name, w.cmd.ProcessState)
			}
			continue
		default:
		}
		if err := w.stop(ctx, stopLimit); err != nil {
			p.offf("%v", err)
		}
	}
}

func (p *plot) killed(worker string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kills {
		if k.victim == victimWorker && k.worker == worker {
			return true
		}
	}
	return false
}
