package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
)

const (
	stormPause   = 400 * time.Millisecond // mean time between two kills of a worker or a child
	stormBacklog = 50                     // live jobs, above which no more are pushed
	serverRest   = 8 * time.Second        // at least so long between two kills of the server
)

// A storm is random kills while jobs come and go.
type storm struct {
	*plot
	random *rand.Rand
	row    *chaosRow
	live   []*chaosProcess
	struck time.Time // when the server was last killed
}

// storm kills for the given time, waits until all jobs are done, and judges.
func (c *queueChaos) storm(ctx context.Context, g *ground, t *chaosTable) error {
	c.plots++
	p, err := newPlot(ctx, g, "storm", longLease, c.verbose)
	if err != nil {
		return err
	}
	defer func() { c.unclean = errors.Join(c.unclean, p.close()) }()
	s := &storm{plot: p, random: rand.New(rand.NewPCG(c.seed, 0)), row: &chaosRow{Step: "at random", Victim: "any", mayAgain: true}, struck: time.Now()}
	for range c.workers {
		w, err := p.start("", chaosJobs)
		if err != nil {
			return err
		}
		s.live = append(s.live, w)
	}
	raging, end := context.WithTimeout(ctx, c.duration)
	defer end()
	var pushes sync.WaitGroup
	pushes.Go(func() { s.pushAll(raging) })
	err = s.kills(raging)
	end()
	pushes.Wait()
	if err != nil || ctx.Err() != nil {
		return err
	}
	p.drain(ctx)
	p.stopAll(ctx)
	t.Rows = append(t.Rows, s.row)
	return p.judge(ctx, s.row)
}

// pushAll pushes jobs while there are few.
func (s *storm) pushAll(ctx context.Context) {
	for i := 0; ctx.Err() == nil; {
		live, err := s.look(ctx)
		if err != nil || live >= stormBacklog {
			cli.Pause(ctx, 50*time.Millisecond)
			continue
		}
		for range 10 {
			order, tries := bystander(i)
			if i++; i%10 == 0 {
				order.For = longRun
			}
			_, _ = s.push(ctx, order, tries) // the plan knows whether it was answered
		}
	}
}

// kills does harm until ctx ends.
func (s *storm) kills(ctx context.Context) error {
	for cli.Pause(ctx, s.wait()); ctx.Err() == nil; cli.Pause(ctx, s.wait()) {
		if s.ground.server != nil && time.Since(s.struck) > serverRest {
			if err := s.killServer(context.WithoutCancel(ctx)); err != nil {
				return err
			}
			continue
		}
		i := s.random.IntN(len(s.live))
		if s.random.IntN(2) == 0 {
			s.killWorker(s.live[i])
			s.row.Kills++
			successor, err := s.start("", chaosJobs)
			if err != nil {
				return err
			}
			s.live[i] = successor
			continue
		}
		pids, err := s.live[i].children(ctx)
		if err != nil {
			continue // it is not up yet
		}
		if err := s.killChild(s.live[i], pids[s.random.IntN(len(pids))]); err != nil {
			return err
		}
		s.row.Kills++
	}
	return nil
}

func (s *storm) wait() time.Duration { return time.Duration(s.random.Int64N(int64(2 * stormPause))) }

func (s *storm) killServer(ctx context.Context) error {
	answers := s.strikes(kill{victim: victimServer})
	s.ground.server.kill()
	s.row.Kills++
	if err := s.ground.server.start(ctx); err != nil {
		return err
	}
	answers()
	s.struck = time.Now()
	return nil
}
