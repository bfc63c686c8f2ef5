// Package pool loads a pool with calls while its workers are killed, and checks each answer.
package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/chaos/internal/rundir"
	"github.com/taskd-go/task/internal/signals"
)

// NewCommand returns the command chaos pool.
func NewCommand() *cobra.Command {
	c := chaos{duration: time.Minute, cfg: task.Config{ServerName: "chaos", WorkerNum: 4}}
	verbose := false
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Put a pool under stress and check its answers",
		Long: `Chaos starts a pool and loads it with mixed calls while its workers are killed, stopped and
continued, terminated, reloaded and fed with garbage, and their socket files are removed. Each task
sets a marker when it begins. At the end chaos prints the answers to the calls, and checks:

  - no task whose call was answered "not run" has run, and each one answered "ran" has
  - accepted = success + fail + lost, and nothing is running
  - 1,000 calls after the faults all succeed, and every worker runs some of them
  - no process and no socket file is left

It exits with 1 if any check fails. It also prints what share of the calls that were lost with their
worker were answered "may have run" and never ran; it should be under 2 %.`,
		Example: `  go run ./chaos pool --duration 60s --workers 4 --seed 1`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.out = cmd.OutOrStdout()
			c.task = task.Define("chaos", new(worker).run)
			if !verbose {
				c.cfg.Logger = slog.New(slog.DiscardHandler)
			}
			return c.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.Var(cli.Duration{P: &c.duration, NotZero: true}, "duration", "how long the faults go on")
	flags.Var(cli.Count{P: &c.cfg.WorkerNum, Min: 1, Max: 512}, "workers", "worker processes, 1 to 512")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the calls and of the faults")
	flags.BoolVar(&verbose, "verbose", false, "print the pool's log and the workers' output")
	return cmd
}

// A chaos is one run of the command.
type chaos struct {
	out      io.Writer
	cfg      task.Config
	task     task.Func[order, []byte]
	duration time.Duration
	seed     uint64

	pool     *task.Task
	markers  *markers
	problems []string // the checks that failed
}

// run does everything. In a worker process, RunIfWorker does not return.
func (c *chaos) run(ctx context.Context) (err error) {
	task.RunIfWorker(c.cfg)
	first, second, stop := signals.Two(ctx)
	defer stop()
	dir, err := rundir.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	c.cfg.TempDir = dir.Path
	if c.markers, err = newMarkers(filepath.Join(c.cfg.TempDir, "markers")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.markers.close()) }()
	if c.pool, err = task.New(c.cfg); err != nil {
		return err
	}
	if err := c.pool.Start(first); err != nil {
		return err
	}

	fmt.Fprintf(c.out, "%s, %s, seed %d\n", c.duration, workers(c.cfg.WorkerNum), c.seed)
	faults, calls := c.load(first)
	if first.Err() == nil {
		c.checkBalance(first)
		c.checkRecovery(first)
	}
	if err := c.pool.Shutdown(second); err != nil {
		c.problem("shutdown: %v", err)
	}
	if first.Err() != nil {
		return cli.Interrupted()
	}
	faults.report(c)
	calls.report(c)
	c.checkLeftovers(dir)
	if len(c.problems) > 0 {
		for _, what := range c.problems {
			fmt.Fprintf(c.out, "PROBLEM: %s\n", what)
		}
		return fmt.Errorf("problems found: %d", len(c.problems))
	}
	fmt.Fprintln(c.out, "all checks passed")
	return nil
}

// load runs the callers and the faults until the time is up.
func (c *chaos) load(ctx context.Context) (*faults, *tally) {
	ctx, cancel := context.WithTimeout(ctx, c.duration)
	defer cancel()
	f := newFaults(c)
	calls := new(tally)
	var all sync.WaitGroup
	all.Go(func() { f.run(ctx) })
	for i := range 8 * c.cfg.WorkerNum {
		all.Go(func() { calls.add(newCaller(c, i).run(ctx)) })
	}
	all.Wait()
	return f, calls
}

// workers returns n with its noun.
func workers(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

// problem records a check that failed.
func (c *chaos) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// stillLimit is how long the pool may take to become idle after the last fault.
const stillLimit = 60 * time.Second

// checkBalance waits until every worker accepts and nothing runs, and adds up the counters.
func (c *chaos) checkBalance(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stillLimit)
	defer cancel()
	still := func() bool {
		rows := c.pool.Status()
		for _, r := range rows {
			if !r.Accepting || r.Running > 0 {
				return false
			}
		}
		return len(rows) == c.cfg.WorkerNum
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !still() && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.problem("workers are missing or busy %s after the last fault", stillLimit)
		}
	}
	var sum task.WorkerStatus
	for _, r := range c.pool.Status() {
		sum.Accepted += r.Accepted
		sum.Success += r.Success
		sum.Fail += r.Fail
		sum.Lost += r.Lost
		sum.Restarts += r.Restarts
		sum.Running += r.Running
	}
	fmt.Fprintf(c.out, "balance: accepted %d = success %d + fail %d + lost %d, running %d, after %d restarts\n",
		sum.Accepted, sum.Success, sum.Fail, sum.Lost, sum.Running, sum.Restarts)
	if sum.Accepted != sum.Success+sum.Fail+sum.Lost || sum.Running != 0 {
		c.problem("the counters do not add up")
		for _, r := range c.pool.Status() {
			fmt.Fprintf(c.out, "  %+v\n", r)
		}
	}
}

// checkRecovery makes calls that must all succeed, and that every worker must share.
func (c *chaos) checkRecovery(ctx context.Context) {
	const calls = 1000
	before := make(map[int]uint64)
	for _, r := range c.pool.Status() {
		before[r.Index] += r.Success
	}
	var failed []error
	var mu sync.Mutex
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for range calls / 4 {
				if _, err := c.task.Sync(ctx, c.pool, order{Do: "return"}); err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	senders.Wait()
	fmt.Fprintf(c.out, "afterwards: %d of %d calls succeeded\n", calls-len(failed), calls)
	if len(failed) > 0 {
		c.problem("%d calls failed after the faults had ended, the first with: %v", len(failed), failed[0])
	}
	for _, r := range c.pool.Status() {
		if r.Success == before[r.Index] {
			c.problem("worker %d ran none of them", r.Index)
		}
	}
}

// checkLeftovers checks that the pool left no process and no socket file. It closes the folder: the
// guard of that is a process too.
func (c *chaos) checkLeftovers(dir *rundir.Dir) {
	sockets, err := filepath.Glob(filepath.Join(dir.Path, "*.sock"))
	if err != nil || len(sockets) > 0 {
		c.problem("socket files are left: %v %v", sockets, err)
	}
	if err := dir.Close(); err != nil {
		c.problem("%v", err)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		c.problem("a child process is left (wait4: pid %d, %v)", pid, err)
	}
}
