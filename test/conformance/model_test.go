package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// TestModel plays random pushes, runs, crashes and waits, and compares the tables with a model of
// them. The database's clock is up to five minutes beside the worker's.
func TestModel(t *testing.T) {
	if flag.Lookup("rapid.checks").Value.String() == flag.Lookup("rapid.checks").DefValue {
		require.NoError(t, flag.Set("rapid.checks", "8"))
		defer flag.Set("rapid.checks", flag.Lookup("rapid.checks").DefValue)
	}
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			clock := db.Tables.Prefix + "model_clock"
			_, err := db.SQL.Exec("CREATE TABLE " + clock + " (ms BIGINT NOT NULL)")
			require.NoError(t, err)
			t.Cleanup(func() { db.SQL.Exec("DROP TABLE " + clock) })
			rapid.Check(t, func(rt *rapid.T) { newModel(t, rt, db, clock).play() })
		})
	}
}

const (
	modelLease = time.Minute
	modelTries = 4
)

// A modelJob is what must be known of a job.
type modelJob struct {
	attempts, crashes int
	done              int  // how often it succeeded
	ended             bool // succeeded, or dead
	held              bool // by a worker that crashed, under a lease that may have lapsed
	heldUntil         int64
}

type model struct {
	t     *testing.T
	rt    *rapid.T
	db    database
	clock string
	q     *queue.Queue
	now   int64

	mu      sync.Mutex
	jobs    map[string]*modelJob
	running map[string]bool
	release chan struct{} // lets the handlers of crashed workers go at the end
	crashed sync.WaitGroup
}

func newModel(t *testing.T, rt *rapid.T, db database, clock string) *model {
	m := &model{t: t, rt: rt, db: db, clock: clock, jobs: map[string]*modelJob{}, running: map[string]bool{},
		release: make(chan struct{})}
	for _, table := range []string{db.Tables.Prefix + "jobs", db.Tables.Prefix + "failed_jobs", clock} {
		m.exec("DELETE FROM " + table)
	}
	m.now = time.Now().UnixMilli() + rapid.Int64Range(-300_000, 300_000).Draw(rt, "skew")
	m.exec(fmt.Sprintf("INSERT INTO %s (ms) VALUES (%d)", clock, m.now))
	m.q = queueOver(t, db.SQL, db, sqlqueue.WithClock("(SELECT ms FROM "+clock+")"))
	return m
}

func (m *model) exec(statement string) {
	_, err := m.db.SQL.Exec(statement)
	require.NoError(m.rt, err, statement)
}

func (m *model) play() {
	defer m.crashed.Wait()
	defer close(m.release)
	m.rt.Repeat(map[string]func(*rapid.T){
		"push":  m.push,
		"run":   m.run,
		"crash": m.crash,
		"wait": func(rt *rapid.T) {
			m.now += rapid.SampledFrom([]int64{1, 1000, modelLease.Milliseconds(), modelLease.Milliseconds() + 1,
				3_600_000}).Draw(rt, "ms")
			m.exec(fmt.Sprintf("UPDATE %s SET ms = %d", m.clock, m.now))
		},
		"": m.check,
	})
}

func (m *model) push(rt *rapid.T) {
	name := fmt.Sprint("job", len(m.jobs))
	e, err := job.New("model", map[string]string{"name": name}, nil, job.RetryPolicy{})
	require.NoError(rt, err)
	_, err = m.q.PushEnvelope(context.Background(), e, queue.Tries(modelTries), queue.Backoff(0),
		queue.Delay(time.Duration(rapid.IntRange(-1, 2).Draw(rt, "delay"))*time.Second))
	require.NoError(rt, err)
	m.jobs[name] = &modelJob{}
}

func (m *model) worker(n int, handle func(name string) job.Result) *queue.Worker {
	reg, err := job.NewRegistry(job.Func("model", func(_ context.Context, e job.Envelope) job.Result {
		var p struct{ Name string }
		_ = e.Bind(&p)
		return handle(p.Name)
	}))
	require.NoError(m.rt, err)
	return queue.NewWorker(m.q, reg, queue.Concurrency(n), queue.Lease(modelLease),
		queue.Runner(&job.Runner{Logger: slog.New(slog.DiscardHandler)}))
}

// begin checks that a job may begin now and counts its attempt.
func (m *model) begin(name string) *modelJob {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[name]
	m.lapse(j)
	if j.ended || j.held || m.running[name] {
		m.t.Errorf("%s runs though it ended (%v) or is held (%v) or runs (%v)", name, j.ended, j.held, m.running[name])
	}
	m.running[name] = true
	j.attempts++
	return j
}

// lapse is what the sweep does with a reservation that is over.
func (m *model) lapse(j *modelJob) {
	if !j.held || j.heldUntil >= m.now {
		return
	}
	j.held = false
	j.crashes++
	j.ended = j.crashes >= 3 || j.attempts >= modelTries
}

func (m *model) run(rt *rapid.T) {
	n := rapid.IntRange(1, 5).Draw(rt, "jobs")
	ends := rapid.SliceOfN(rapid.SampledFrom([]job.Kind{job.KindSuccess, job.KindRetry, job.KindFail, job.KindDefer}),
		n, n).Draw(rt, "ends")
	var mu sync.Mutex
	_, err := m.worker(2, func(name string) job.Result {
		mu.Lock()
		end := ends[0]
		ends = ends[1:]
		mu.Unlock()
		j := m.begin(name)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.running, name)
		switch end {
		case job.KindSuccess:
			j.done, j.ended = j.done+1, true
			return job.Success()
		case job.KindRetry:
			j.ended = j.attempts >= modelTries
			return job.Retry(errors.New("no"))
		case job.KindFail:
			j.ended = true
			return job.Fail(errors.New("no"))
		default:
			j.attempts--
			return job.Defer(time.Second)
		}
	}).WorkUntilEmpty(context.Background(), n)
	require.NoError(rt, err)
}

// crash lets a worker take jobs and never be heard of again. What its handlers answer at the end is
// too late.
func (m *model) crash(rt *rapid.T) {
	c, err := m.q.Counts(context.Background(), "")
	require.NoError(rt, err)
	n := min(rapid.IntRange(1, 3).Draw(rt, "jobs"), int(c.Ready)) // with fewer it would go on looking for more
	if n == 0 {
		return
	}
	began := make(chan struct{}, n)
	w := m.worker(n, func(name string) job.Result {
		j := m.begin(name)
		m.mu.Lock()
		delete(m.running, name)
		j.held, j.heldUntil = true, m.now+modelLease.Milliseconds()
		m.mu.Unlock()
		began <- struct{}{}
		<-m.release
		return job.Success()
	})
	m.crashed.Go(func() {
		if _, err := w.WorkUntilEmpty(context.Background(), n); err != nil {
			m.t.Errorf("crashed worker: %v", err)
		}
	})
	for range n {
		select {
		case <-began:
		case <-time.After(20 * time.Second):
			require.Fail(rt, "a due job was not taken")
		}
	}
}

// check sweeps and compares the tables with the model.
func (m *model) check(rt *rapid.T) {
	ctx := context.Background()
	_, err := queue.NewWorker(m.q, nil, queue.Queues("elsewhere")).WorkUntilEmpty(ctx, 0)
	require.NoError(rt, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[string]bool{}
	for info, err := range m.q.List(ctx, "") {
		require.NoError(rt, err)
		name := modelName(info.Envelope)
		j := m.jobs[name]
		m.lapse(j)
		seen[name] = true
		require.False(rt, j.ended, "%s is alive and must have ended", name)
		require.Equal(rt, []int{j.attempts, j.crashes}, []int{info.Attempts, info.Crashes}, "attempts and crashes of %s",
			name)
	}
	for f, err := range m.q.Failed(ctx, queue.Filter{}) {
		require.NoError(rt, err)
		var e job.Envelope
		require.NoError(rt, e.UnmarshalJSON([]byte(f.Payload)))
		name := modelName(e)
		j := m.jobs[name]
		m.lapse(j)
		require.False(rt, seen[name], "%s is there twice", name)
		seen[name] = true
		require.True(rt, j.ended && j.done == 0, "%s is dead and must not be", name)
		require.Equal(rt, []int{j.attempts, j.crashes}, []int{f.Attempts, f.Crashes}, "attempts and crashes of dead %s", name)
	}
	for name, j := range m.jobs {
		require.True(rt, seen[name] || j.done == 1, "%s is lost", name)
	}
}

func modelName(e job.Envelope) string {
	var p struct{ Name string }
	_ = e.Bind(&p)
	return p.Name
}
