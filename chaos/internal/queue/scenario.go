package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// reachLimit is how long a worker may take to get to a step.
const reachLimit = 2 * time.Minute

// A scenario is the kill of one target at one step.
type scenario struct {
	*workload
	step   step
	row    *row
	worker *workerProcess
	waiter *waiter // the process that waits at the step; nil: none came
}

// matrix kills each kind of target at each step.
func (c *chaos) matrix(ctx context.Context, f *fixture, t *table) error {
	var errs []error
	for some := range slices.Chunk(killPoints(targetWorker, targetChild), f.parallel) {
		scenarios, err := c.scenarios(ctx, f, some, shortLease)
		if err == nil {
			each(scenarios, func(s *scenario) {
				s.reach(ctx, c.jobs)
				s.kill(ctx)
				s.finish(ctx)
			})
		}
		errs = append(errs, err, c.report(ctx, t, scenarios))
	}
	if f.server == nil {
		t.Skipped = append(t.Skipped, fmt.Sprintf("the kills of the %s: %s", targetServer, f.noServer))
		return errors.Join(errs...)
	}
	scenarios, err := c.scenarios(ctx, f, killPoints(targetServer), longLease)
	if err == nil {
		each(scenarios, func(s *scenario) { s.reach(ctx, c.jobs) })
		err = killServer(ctx, f, scenarios)
		each(scenarios, func(s *scenario) { s.finish(ctx) })
	}
	return errors.Join(append(errs, err, c.report(ctx, t, scenarios))...)
}

// each calls do for all scenarios at once.
func each(scenarios []*scenario, do func(*scenario)) {
	var all sync.WaitGroup
	for _, s := range scenarios {
		all.Go(func() { do(s) })
	}
	all.Wait()
}

// A killPoint is a target and the step at which it is killed.
type killPoint struct {
	target string
	step   step
}

// killPoints returns all steps for each target.
func killPoints(targets ...string) (all []killPoint) {
	for _, target := range targets {
		for _, step := range steps {
			all = append(all, killPoint{target, step})
		}
	}
	return all
}

// scenarios makes a scenario for each point.
func (c *chaos) scenarios(
	ctx context.Context, f *fixture, points []killPoint, lease time.Duration,
) ([]*scenario, error) {
	workloads, errs := make([]*workload, len(points)), make([]error, len(points))
	var all sync.WaitGroup
	for i := range points {
		c.workloads++
		name := fmt.Sprintf("c%d", c.workloads)
		all.Go(func() { workloads[i], errs[i] = newWorkload(ctx, f, name, lease, c.verbose) })
	}
	all.Wait()
	var scenarios []*scenario
	for i, p := range points {
		if workloads[i] != nil {
			r := &row{Step: p.step.name, Target: p.target, mayAgain: slices.Contains(p.step.again, p.target)}
			scenarios = append(scenarios, &scenario{workload: workloads[i], step: p.step, row: r})
		}
	}
	return scenarios, errors.Join(errs...)
}

// report audits scenarios, adds them to the table, and removes what they used.
func (c *chaos) report(ctx context.Context, t *table, scenarios []*scenario) (err error) {
	for _, s := range scenarios {
		if ctx.Err() == nil {
			err = errors.Join(err, s.audit(ctx, s.row))
			t.Rows = append(t.Rows, s.row)
		}
		c.unclean = errors.Join(c.unclean, s.close())
	}
	return err
}

// reach pushes the jobs, starts a worker and waits until it is at the step with the first job. One
// job runs at a time.
func (s *scenario) reach(ctx context.Context, jobs int) {
	for i := range jobs {
		order, tries := otherJob(i)
		if i == 0 {
			order, tries = s.step.order, s.step.tries
		}
		r, err := s.push(ctx, order, tries)
		if err != nil {
			s.problem("push: %v", err)
			return
		}
		r.held = i == 0
	}
	var err error
	if s.worker, err = s.start(s.step.name, 1); err != nil {
		s.problem("worker: %v", err)
		return
	}
	select {
	case s.waiter = <-s.gate.first:
	case <-s.worker.ended:
		s.problem("the worker ended before the step, with %s", s.worker.cmd.ProcessState)
	case <-time.After(reachLimit):
		s.problem("the step was not reached within %s", reachLimit)
	case <-ctx.Done():
	}
	if _, err := s.checkRows(ctx); err != nil {
		s.problem("rows: %v", err)
	}
}

// otherJob returns a job that fails once, fails always, or succeeds.
func otherJob(i int) (order, int) {
	switch i % 4 {
	case 0:
		return order{Fails: 1, For: shortRun}, 5
	case 1:
		return order{Fails: always, For: shortRun}, 2
	default:
		return order{For: shortRun}, 5
	}
}

// kill kills the worker and starts another one, or kills the pool's processes.
func (s *scenario) kill(ctx context.Context) {
	if s.waiter == nil {
		return
	}
	s.row.Kills = 1
	if s.row.Target == targetWorker {
		s.killWorker(s.worker)
		s.waiter.release(wordGo)
		if _, err := s.start("", 1); err != nil {
			s.problem("second worker: %v", err)
		}
		return
	}
	pids := []int{s.waiter.PID}
	if pids[0] == s.worker.pid() {
		var err error
		if pids, err = s.worker.children(ctx); err != nil {
			s.problem("children: %v", err)
		}
	}
	for _, pid := range pids {
		if err := s.killChild(s.worker, pid); err != nil {
			s.problem("kill child: %v", err)
		}
	}
	s.row.Kills = len(pids)
	s.waiter.release(wordGo)
}

// killServer kills the database when all scenarios are at their steps, lets the workers go on, and
// starts it again.
func killServer(ctx context.Context, f *fixture, scenarios []*scenario) error {
	var done []func()
	for _, s := range scenarios {
		done = append(done, s.recordKill(kill{target: targetServer}))
		s.row.Kills = 1
	}
	f.server.Kill()
	for _, s := range scenarios {
		if s.waiter == nil {
			continue
		}
		word := wordGo
		if s.step.stage == committed {
			word = wordLost
		}
		s.waiter.release(word)
	}
	if err := f.restart(ctx); err != nil {
		return err
	}
	for _, answers := range done {
		answers()
	}
	return nil
}

// finish waits until all jobs are done and the workers have ended.
func (s *scenario) finish(ctx context.Context) {
	s.drain(ctx)
	if ctx.Err() == nil {
		s.stopAll(ctx)
	}
}
