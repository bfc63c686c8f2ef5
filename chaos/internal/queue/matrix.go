package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
)

// reachLimit is how long a worker may take to get to a step.
const reachLimit = 30 * time.Second

// A scene is a step and a victim.
type scene struct {
	*plot
	step   chaosStep
	row    *chaosRow
	worker *chaosProcess
	guest  *guest // who waits at the step; nil: nobody came
}

// matrix kills each kind of victim at each step.
func (c *queueChaos) matrix(ctx context.Context, g *ground, t *chaosTable) error {
	var errs []error
	for some := range slices.Chunk(marks(victimWorker, victimChild), g.wide) {
		scenes, err := c.scenes(ctx, g, some, shortLease)
		if err == nil {
			each(scenes, func(s *scene) {
				s.reach(ctx, c.jobs)
				s.strike(ctx)
				s.finish(ctx)
			})
		}
		errs = append(errs, err, c.report(ctx, t, scenes))
	}
	if g.server == nil {
		t.Skipped = append(t.Skipped, fmt.Sprintf("the kills of the %s: %s", victimServer, g.why))
		return errors.Join(errs...)
	}
	scenes, err := c.scenes(ctx, g, marks(victimServer), longLease)
	if err == nil {
		each(scenes, func(scene *scene) { scene.reach(ctx, c.jobs) })
		err = c.killServer(ctx, g, scenes)
		each(scenes, func(scene *scene) { scene.finish(ctx) })
	}
	return errors.Join(append(errs, err, c.report(ctx, t, scenes))...)
}

// each does something for all scenes at once.
func each(scenes []*scene, do func(*scene)) {
	var all sync.WaitGroup
	for _, scene := range scenes {
		all.Go(func() { do(scene) })
	}
	all.Wait()
}

// A mark is who is to be killed where.
type mark struct {
	victim string
	step   chaosStep
}

// marks are all steps of some victims.
func marks(victims ...string) (all []mark) {
	for _, victim := range victims {
		for _, step := range chaosSteps {
			all = append(all, mark{victim, step})
		}
	}
	return all
}

// scenes have tables of their own each.
func (c *queueChaos) scenes(ctx context.Context, g *ground, marks []mark, lease time.Duration) (scenes []*scene, err error) {
	plots, errs := make([]*plot, len(marks)), make([]error, len(marks))
	var all sync.WaitGroup
	for i := range marks {
		c.plots++
		name := fmt.Sprintf("c%d", c.plots)
		all.Go(func() { plots[i], errs[i] = newPlot(ctx, g, name, lease, c.verbose) })
	}
	all.Wait()
	for i, m := range marks {
		if plots[i] != nil {
			row := &chaosRow{Step: m.step.name, Victim: m.victim, mayAgain: slices.Contains(m.step.again, m.victim)}
			scenes = append(scenes, &scene{plot: plots[i], step: m.step, row: row})
		}
	}
	return scenes, errors.Join(errs...)
}

// report judges scenes, puts them into the table, and removes what they had.
func (c *queueChaos) report(ctx context.Context, t *chaosTable, scenes []*scene) (err error) {
	for _, scene := range scenes {
		if ctx.Err() == nil {
			err = errors.Join(err, scene.judge(ctx, scene.row))
			t.Rows = append(t.Rows, scene.row)
		}
		c.unclean = errors.Join(c.unclean, scene.close())
	}
	return err
}

// reach lets a worker come to the step. The first job is that of the step, and alone: one runs at a time. Behind it
// are others of all kinds.
func (c *scene) reach(ctx context.Context, jobs int) {
	for i := range jobs {
		order, tries := bystander(i)
		if i == 0 {
			order, tries = c.step.order, c.step.tries
		}
		plan, err := c.push(ctx, order, tries)
		if err != nil {
			c.offf("push: %v", err)
		}
		plan.held = i == 0
	}
	var err error
	if c.worker, err = c.start(c.step.name, 1); err != nil {
		c.offf("worker: %v", err)
		return
	}
	select {
	case c.guest = <-c.meeting.first:
	case <-c.worker.ended:
		c.offf("the worker ended before the step, with %s", c.worker.cmd.ProcessState)
	case <-time.After(reachLimit):
		c.offf("the step was not reached within %s", reachLimit)
	case <-ctx.Done():
	}
	if _, err := c.look(ctx); err != nil {
		c.offf("look: %v", err)
	}
}

// bystander is a job of one of the kinds that there are.
func bystander(i int) (chaosOrder, int) {
	switch i % 4 {
	case 0:
		return chaosOrder{Fails: 1, For: quickRun}, 5
	case 1:
		return chaosOrder{Fails: always, For: quickRun}, 2
	default:
		return chaosOrder{For: quickRun}, 5
	}
}

// strike kills the worker, which gets a successor, or the pool's processes.
func (c *scene) strike(ctx context.Context) {
	if c.guest == nil {
		return
	}
	c.row.Kills = 1
	if c.row.Victim == victimWorker {
		c.killWorker(c.worker)
		c.guest.dismiss(wordGo)
		if _, err := c.start("", 1); err != nil {
			c.offf("successor: %v", err)
		}
		return
	}
	pids := []int{c.guest.PID}
	if pids[0] == c.worker.pid() {
		var err error
		if pids, err = c.worker.children(ctx); err != nil {
			c.offf("children: %v", err)
		}
	}
	for _, pid := range pids {
		if err := c.killChild(c.worker, pid); err != nil {
			c.offf("kill child: %v", err)
		}
	}
	c.row.Kills = len(pids)
	c.guest.dismiss(wordGo)
}

// killServer kills the database when all scenes are at their steps, lets the workers go on, and starts it again.
func (c *queueChaos) killServer(ctx context.Context, g *ground, scenes []*scene) error {
	var answers []func()
	for _, scene := range scenes {
		answers = append(answers, scene.strikes(kill{victim: victimServer}))
		scene.row.Kills = 1
	}
	g.server.kill()
	for _, scene := range scenes {
		if scene.guest == nil {
			continue
		}
		word := wordGo
		if scene.step.stage == committed {
			word = wordLost
		}
		scene.guest.dismiss(word)
	}
	if err := g.server.start(ctx); err != nil {
		return err
	}
	for _, again := range answers {
		again()
	}
	return nil
}

// finish waits until all jobs are done and the workers have ended.
func (c *scene) finish(ctx context.Context) {
	c.drain(ctx)
	if ctx.Err() == nil {
		c.stopAll(ctx)
	}
}

// chaosDir is the folder of a run.
func chaosDir() (dir string, remove func() error, err error) {
	dir, err = cli.TempDir()
	return dir, func() error { return os.RemoveAll(dir) }, err
}
