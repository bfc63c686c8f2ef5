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

// A workload is a set of tables with jobs in them, and the workers that run the jobs and are
// killed.
type workload struct {
	fixture *fixture
	dir     string
	db      *database
	at      source
	gate    *gate
	verbose bool
	lease   time.Duration

	mu       sync.Mutex
	jobs     map[string]*jobRecord // by the envelope's id
	kills    []kill
	workers  []*workerProcess
	started  int
	problems []string
}

// A jobRecord is what the process that pushed a job knows about it.
type jobRecord struct {
	order  order
	tries  int
	stored bool  // the push succeeded
	gone   int64 // when the row was seen to be gone, unix nanoseconds; 0: not yet
	held   bool  // it is the job at the step
}

// A kill is the kill of one target.
type kill struct {
	target string
	worker string // the name of the worker that was killed, or whose child was
	pid    int
	at     int64 // unix nanoseconds; the kill happened at this time or later …
	by     int64 // … and before this one, which for a database is when it answered again; 0: not yet
}

func newWorkload(
	ctx context.Context, f *fixture, name string, lease time.Duration, verbose bool,
) (w *workload, err error) {
	w = &workload{
		fixture: f, dir: filepath.Join(f.dir, name), lease: lease, verbose: verbose, jobs: make(map[string]*jobRecord),
	}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return nil, err
	}
	w.at = f.source(w.dir)
	w.at.tables = sqlqueue.Tables{Prefix: f.prefix + name + "_"}
	// A signal does not interrupt it: half the tables could not be removed.
	opening, cancel := context.WithTimeout(context.WithoutCancel(ctx), openLimit)
	defer cancel()
	if w.db, err = w.at.open(opening); err != nil {
		return nil, err
	}
	if w.gate, err = newGate(w.gatePath()); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *workload) gatePath() string { return filepath.Join(w.dir, "gate.sock") }

// close ends the workers and removes the tables if the database outlives the run.
func (w *workload) close() (err error) {
	for _, p := range w.workers {
		p.kill()
	}
	if w.gate != nil {
		err = w.gate.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	if w.fixture.remains {
		err = errors.Join(err, migrate.Down(ctx, w.db.SQL, w.db.Dialect, w.at.tables))
	}
	return errors.Join(err, w.db.Close())
}

const (
	openLimit   = 60 * time.Second // how long a database may take to make the tables …
	removeLimit = 30 * time.Second // … and to remove them
)

// problem records a check that failed.
func (w *workload) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// backoff is the wait after a failed attempt.
const backoff = 50 * time.Millisecond

// push stores a job. If it returns both a record and an error, the job may be stored.
func (w *workload) push(ctx context.Context, o order, tries int) (*jobRecord, error) {
	policy := job.DefaultRetryPolicy()
	policy.MaxAttempts = tries
	e, err := job.New(jobType, o, nil, policy)
	if err != nil {
		return nil, err
	}
	r := &jobRecord{order: o, tries: tries}
	w.mu.Lock()
	w.jobs[e.JobID] = r
	w.mu.Unlock()
	_, err = w.db.queue.PushEnvelope(ctx, e, queue.Tries(tries), queue.Backoff(backoff))
	w.mu.Lock()
	defer w.mu.Unlock()
	r.stored = err == nil
	return r, err
}

// checkRows compares each live row with the job's own memory, and records which jobs are gone. It
// does not look for jobs that are pushed meanwhile.
func (w *workload) checkRows(ctx context.Context) (live int, err error) {
	missing := make(map[string]*jobRecord)
	w.mu.Lock()
	for id, r := range w.jobs {
		if r.stored && r.gone == 0 {
			missing[id] = r
		}
	}
	w.mu.Unlock()
	for info, err := range w.db.queue.List(ctx, "") {
		if err != nil {
			return 0, err
		}
		live++
		delete(missing, info.JobID)
		if text := rowProblem(info); text != "" {
			w.problem("row %s: %s", info.ID, text)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range missing {
		r.gone = time.Now().UnixNano()
	}
	return live, nil
}

// rowProblem returns what is wrong with the counts of a live row, or "". The memory of a job has
// each attempt except the one that runs, and each crash.
func rowProblem(j queue.JobInfo) string {
	attempts := len(j.Failures)
	if j.State == "reserved" {
		attempts++
	}
	if crashes := countCrashes(past(j.Failures)); j.Attempts != attempts || j.Crashes != crashes {
		return fmt.Sprintf("%s, attempts %d and crashes %d, and it remembers %v",
			j.State, j.Attempts, j.Crashes, past(j.Failures))
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

// checkEvery is the time between two checks of the live rows.
const checkEvery = 20 * time.Millisecond

// drainLimit is how long the jobs may take after the last kill.
const drainLimit = 2 * time.Minute

// drain waits until no job is live.
func (w *workload) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	for {
		live, err := w.checkRows(ctx)
		if err == nil && live == 0 {
			return
		}
		if ctx.Err() != nil {
			w.problem("%d jobs are still live %s after the last kill (%v)", live, drainLimit, err)
			return
		}
		cli.Pause(ctx, checkEvery)
	}
}

// recordKill records a kill that is about to happen. Call done after it.
func (w *workload) recordKill(k kill) (done func()) {
	k.at = time.Now().UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kills = append(w.kills, k)
	mine := len(w.kills) - 1
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kills[mine].by = time.Now().UnixNano()
	}
}
