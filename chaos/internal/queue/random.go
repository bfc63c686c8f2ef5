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
	killPause  = 400 * time.Millisecond // mean time between two kills of a worker or a child
	maxLive    = 50                     // no more jobs are pushed while so many are live
	serverRest = 8 * time.Second        // shortest time between two kills of the server
)

// randomKills kills at random while jobs come and go.
type randomKills struct {
	*workload
	random     *rand.Rand
	row        *row
	live       []*workerProcess
	serverKill time.Time // the last one
}

// random kills for the given time, waits until all jobs are done, and audits.
func (c *chaos) random(ctx context.Context, f *fixture, t *table) error {
	c.workloads++
	w, err := newWorkload(ctx, f, "random", longLease, c.verbose)
	if err != nil {
		return err
	}
	defer func() { c.unclean = errors.Join(c.unclean, w.close()) }()
	k := &randomKills{
		workload: w, random: rand.New(rand.NewPCG(c.seed, 0)), serverKill: time.Now(),
		row: &row{Step: atRandom, Target: "any", mayAgain: true},
	}
	for range c.workers {
		p, err := w.start("", randomConcurrency)
		if err != nil {
			return err
		}
		k.live = append(k.live, p)
	}
	limited, end := context.WithTimeout(ctx, c.duration)
	defer end()
	var pushes sync.WaitGroup
	pushes.Go(func() { k.pushAll(limited) })
	err = k.killAll(limited)
	end()
	pushes.Wait()
	if err != nil || ctx.Err() != nil {
		return err
	}
	w.drain(ctx)
	w.stopAll(ctx)
	t.Rows = append(t.Rows, k.row)
	return w.audit(ctx, k.row)
}

// pushAll pushes jobs while few are live.
func (k *randomKills) pushAll(ctx context.Context) {
	for i := 0; ctx.Err() == nil; {
		live, err := k.checkRows(ctx)
		if err != nil || live >= maxLive {
			cli.Pause(ctx, 50*time.Millisecond)
			continue
		}
		for range 10 {
			order, tries := otherJob(i)
			if i++; i%10 == 0 {
				order.For = longRun
			}
			_, _ = k.push(ctx, order, tries) // the record has whether it succeeded
		}
	}
}

// killAll kills until ctx ends.
func (k *randomKills) killAll(ctx context.Context) error {
	for cli.Pause(ctx, k.wait()); ctx.Err() == nil; cli.Pause(ctx, k.wait()) {
		if k.fixture.server != nil && time.Since(k.serverKill) > serverRest {
			if err := k.killServer(context.WithoutCancel(ctx)); err != nil {
				return err
			}
			continue
		}
		i := k.random.IntN(len(k.live))
		if k.random.IntN(2) == 0 {
			k.killWorker(k.live[i])
			k.row.Kills++
			next, err := k.start("", randomConcurrency)
			if err != nil {
				return err
			}
			k.live[i] = next
			continue
		}
		pids, err := k.live[i].children(ctx)
		if err != nil {
			continue // the worker is not ready
		}
		if err := k.killChild(k.live[i], pids[k.random.IntN(len(pids))]); err != nil {
			return err
		}
		k.row.Kills++
	}
	return nil
}

func (k *randomKills) wait() time.Duration {
	return time.Duration(k.random.Int64N(int64(2 * killPause)))
}

func (k *randomKills) killServer(ctx context.Context) error {
	done := k.recordKill(kill{target: targetServer})
	k.fixture.server.Kill()
	k.row.Kills++
	if err := k.fixture.restart(ctx); err != nil {
		return err
	}
	done()
	k.serverKill = time.Now()
	return nil
}
