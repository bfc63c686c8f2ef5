package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
)

// NewCommand returns the command chaos pool.
func NewCommand() *cobra.Command {
	c := chaos{duration: time.Minute, cfg: task.Config{ServerName: "chaos", WorkerNum: 4}}
	verbose := false
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Put a pool under stress and check its answers",
		Long: `Chaos runs a pool of its own and loads it with mixed calls while its workers are
killed, stopped and continued, terminated, reloaded and fed with garbage, and
their socket files are removed. Each task leaves a marker when it begins. In the
end chaos prints what the calls were answered, and checks:

  - no task whose call was answered "not run" has run, and each that "ran" has
  - accepted = success + fail + lost, and nothing is running
  - 1,000 calls after the faults all succeed, and every worker has some of them
  - no process and no socket file is left

It exits with 1 when anything is off. It also prints which share of the calls that
were lost with their worker was answered "may have run" and never ran; it should be under 2 %.`,
		Example: `  go run ./chaos pool --duration 60s --workers 4 --seed 1`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.out = cmd.OutOrStdout()
			c.task = task.Define("chaos", new(stressed).run)
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

// A chaos is one run.
type chaos struct {
	out      io.Writer
	cfg      task.Config
	task     task.Func[stressor, []byte]
	duration time.Duration
	seed     uint64

	pool    *task.Task
	markers *markers
	off     []string // what is off
}

// run does everything. A worker process does not come further than RunIfWorker.
func (c *chaos) run(ctx context.Context) (err error) {
	task.RunIfWorker(c.cfg)
	first, second, stop := cli.TwoSignals(ctx)
	defer stop()
	if c.cfg.TempDir, err = cli.TempDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.cfg.TempDir)) }()
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
	faults, calls := c.storm(first)
	if first.Err() == nil {
		c.checkBalance(first)
		c.checkRecovery(first)
	}
	if err := c.pool.Shutdown(second); err != nil {
		c.offf("shutdown: %v", err)
	}
	if first.Err() != nil {
		return cli.Interrupted()
	}
	faults.report(c)
	calls.report(c)
	c.checkLeftovers()
	if len(c.off) > 0 {
		for _, what := range c.off {
			fmt.Fprintf(c.out, "OFF: %s\n", what)
		}
		return fmt.Errorf("%d things are off", len(c.off))
	}
	fmt.Fprintln(c.out, "all is well")
	return nil
}

// storm runs the load and the faults until the time is up.
func (c *chaos) storm(ctx context.Context) (*faults, *tally) {
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

func (c *chaos) offf(format string, args ...any) {
	c.off = append(c.off, fmt.Sprintf(format, args...))
}

// stillLimit is how long the pool may take to come to rest after the last fault.
const stillLimit = 60 * time.Second

// checkBalance waits until every worker is back and nothing runs, and adds up.
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
			c.offf("the pool is not whole and still %s after the last fault", stillLimit)
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
		c.offf("the counters do not add up")
		for _, r := range c.pool.Status() {
			fmt.Fprintf(c.out, "  %+v\n", r)
		}
	}
}

// checkRecovery makes calls that must all succeed, spread over all workers.
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
				if _, err := c.task.Sync(ctx, c.pool, stressor{Do: "return"}); err != nil {
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
		c.offf("%d calls failed when the faults were over, the first with: %v", len(failed), failed[0])
	}
	for _, r := range c.pool.Status() {
		if r.Success == before[r.Index] {
			c.offf("worker %d had none of them", r.Index)
		}
	}
}

// checkLeftovers looks for what a pool that has ended must not leave.
func (c *chaos) checkLeftovers() {
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		c.offf("a child process is left (wait4: pid %d, %v)", pid, err)
	}
	sockets, err := filepath.Glob(filepath.Join(c.cfg.TempDir, "*.sock"))
	if err != nil || len(sockets) > 0 {
		c.offf("socket files are left: %v %v", sockets, err)
	}
}
