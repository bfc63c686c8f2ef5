package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
)

// A plot is tables of their own, with jobs in them and workers that are killed.
type plot struct {
	ground  *ground
	dir     string
	db      *database
	at      source
	meeting *meeting
	verbose bool
	lease   time.Duration

	mu      sync.Mutex
	plans   map[string]*plan // by the envelope's id
	kills   []kill
	workers []*chaosProcess
	started int
	off     []string
}

// A plan is what is known of a job from outside.
type plan struct {
	order  chaosOrder
	tries  int
	stored bool  // the push was answered
	gone   int64 // when the row was seen to be gone, unix nanoseconds; 0: not yet
	held   bool  // it was there when the victim was killed
}

// A kill is one victim.
type kill struct {
	victim string
	worker string // its name, or that of the child's
	pid    int
	at     int64 // unix nanoseconds; it happened at this time or later …
	by     int64 // … and before this one, which for a database is when it answered again; 0: not yet
}

func newPlot(ctx context.Context, g *ground, name string, lease time.Duration, verbose bool) (p *plot, err error) {
	p = &plot{ground: g, dir: filepath.Join(g.dir, name), lease: lease, verbose: verbose, plans: make(map[string]*plan)}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	p.at = g.source(p.dir)
	p.at.tables = sqlqueue.Tables{Prefix: g.prefix + name + "_"}
	// Not cut off by a signal: what is half made could not be removed.
	opening, cancel := context.WithTimeout(context.WithoutCancel(ctx), openLimit)
	defer cancel()
	if p.db, err = p.at.open(opening); err != nil {
		return nil, err
	}
	if p.meeting, err = newMeeting(p.meetingPath()); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *plot) meetingPath() string { return filepath.Join(p.dir, "meet.sock") }

// close ends the workers and removes the tables.
func (p *plot) close() (err error) {
	for _, w := range p.workers {
		w.kill()
	}
	if p.meeting != nil {
		err = p.meeting.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanLimit)
	defer cancel()
	if p.ground.keeps {
		err = errors.Join(err, migrate.Down(ctx, p.db.sql, p.db.dialect, p.at.tables))
	}
	return errors.Join(err, p.db.Close())
}

const (
	openLimit  = 30 * time.Second // for a database to make the tables
	cleanLimit = 10 * time.Second // … and to remove them
)

func (p *plot) offf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = append(p.off, fmt.Sprintf(format, args...))
}

// backoff is the wait after a failed attempt.
const chaosBackoff = 50 * time.Millisecond

// push stores a job. An error besides a plan says that nobody knows whether it is stored.
func (p *plot) push(ctx context.Context, o chaosOrder, tries int) (*plan, error) {
	policy := job.DefaultRetryPolicy()
	policy.MaxAttempts = tries
	e, err := job.New(chaosType, o, nil, policy)
	if err != nil {
		return nil, err
	}
	mine := &plan{order: o, tries: tries}
	p.mu.Lock()
	p.plans[e.JobID] = mine
	p.mu.Unlock()
	_, err = p.db.queue.PushEnvelope(ctx, e, queue.Tries(tries), queue.Backoff(chaosBackoff))
	p.mu.Lock()
	defer p.mu.Unlock()
	mine.stored = err == nil
	return mine, err
}

// look reads the live rows, holds each against its own memory, and notes which jobs are gone. Those of push that come
// meanwhile are not looked at.
func (p *plot) look(ctx context.Context) (live int, err error) {
	stored := make(map[string]*plan)
	p.mu.Lock()
	for id, plan := range p.plans {
		if plan.stored && plan.gone == 0 {
			stored[id] = plan
		}
	}
	p.mu.Unlock()
	for info, err := range p.db.queue.List(ctx, "") {
		if err != nil {
			return 0, err
		}
		live++
		delete(stored, info.JobID)
		if text := wrongAccount(info); text != "" {
			p.offf("row %s: %s", info.ID, text)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, plan := range stored {
		plan.gone = time.Now().UnixNano()
	}
	return live, nil
}

// wrongAccount says what is wrong with the counts of a live row: each attempt but the one that runs is in its memory,
// and each crash.
func wrongAccount(j queue.JobInfo) string {
	attempts := len(j.Failures)
	if j.State == "reserved" {
		attempts++
	}
	if crashes := countCrashes(past(j.Failures)); j.Attempts != attempts || j.Crashes != crashes {
		return fmt.Sprintf("%s, attempts %d and crashes %d, and it remembers %v", j.State, j.Attempts, j.Crashes, past(j.Failures))
	}
	return ""
}

func countCrashes(history []pastAttempt) (n int) {
	for _, a := range history {
		if a.Reason == job.ReasonCrashed {
			n++
		}
	}
	return n
}

// lookPause is the time between two looks at the live rows.
const lookPause = 20 * time.Millisecond

// drainLimit is how long the jobs may take when nothing is killed any more.
const drainLimit = 60 * time.Second

// drain waits until no job is live.
func (p *plot) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	for {
		live, err := p.look(ctx)
		if err == nil && live == 0 {
			return
		}
		if ctx.Err() != nil {
			p.offf("%d jobs are still there %s after the last kill (%v)", live, drainLimit, err)
			return
		}
		cli.Pause(ctx, lookPause)
	}
}

// strikes notes a kill that is about to happen; done is for when it has.
func (p *plot) strikes(k kill) (done func()) {
	k.at = time.Now().UnixNano()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills = append(p.kills, k)
	mine := len(p.kills) - 1
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.kills[mine].by = time.Now().UnixNano()
	}
}
