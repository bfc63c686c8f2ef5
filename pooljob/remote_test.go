package pooljob

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
	"github.com/taskd-go/task/internal/textcut"
	"github.com/taskd-go/task/job"
)

// runs are the words of the lines that the handlers of a directory have written, two each.
func runs(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil {
		return nil
	}
	return strings.Fields(strings.TrimSpace(string(data)))
}

// untilFinished runs the job until it is finished, each attempt as soon as the last is decided.
func untilFinished(t *testing.T, r *job.Runner, h job.Handler, e job.Envelope) (d job.Decision, attempts int) {
	t.Helper()
	for {
		d = r.Decide(t.Context(), h, e)
		attempts++
		if d.Outcome != job.Requeued {
			return d, attempts
		}
		e = d.Envelope
	}
}

func handlerOf(t testing.TB, pool task.Caller, jobType string, hardLimit time.Duration) job.Handler {
	t.Helper()
	h, err := remote.Handlers(pool, hardLimit).Require(jobType)
	require.NoError(t, err)
	return h
}

func quiet() *job.Runner {
	return &job.Runner{Policy: job.RetryPolicy{MaxAttempts: 10}, Logger: slog.New(slog.DiscardHandler)}
}

func TestResultsCrossWhole(t *testing.T) {
	t.Parallel()
	h := handlerOf(t, startPool(t), "answer", 0)
	for name, want := range answers {
		t.Run(name, func(t *testing.T) {
			got := h.Handle(t.Context(), newJob(t, "answer", order{What: name}, 5))
			assert.Equal(t, want.Kind(), got.Kind())
			if want.Err() == nil {
				assert.NoError(t, got.Err())
			} else {
				assert.EqualError(t, got.Err(), want.Err().Error())
			}
			assert.Equal(t, job.ErrorClass(want.Err()), job.ErrorClass(got.Err()))
			wantDelay, wantGiven := want.Delay()
			delay, given := got.Delay()
			assert.Equal(t, wantDelay, delay)
			assert.Equal(t, wantGiven, given)
		})
	}
	var coded *job.DeadError
	require.ErrorAs(t, h.Handle(t.Context(), newJob(t, "answer", order{What: "fail"}, 5)).Err(), &coded)
	assert.Equal(t, job.ReasonDecode, coded.Reason)
}

func TestAPanicInTheWorkerIsARetryWithItsStack(t *testing.T) {
	t.Parallel()
	result := handlerOf(t, startPool(t), "panic", 0).Handle(t.Context(), newJob(t, "panic", order{}, 5))
	assert.Equal(t, job.KindRetry, result.Kind())
	assert.EqualError(t, result.Err(), "at the disco")
	var panicked *job.PanicError
	require.ErrorAs(t, result.Err(), &panicked)
	assert.Contains(t, string(panicked.Stack), "testHandlers")
}

func TestALongPanicInTheWorkerIsCutWithAMark_Found86(t *testing.T) {
	t.Parallel()
	h := handlerOf(t, startPool(t), "panic at length", 0)
	err := h.Handle(t.Context(), newJob(t, "panic at length", order{}, 5)).Err()
	require.Error(t, err)
	text := err.Error()
	assert.LessOrEqual(t, len(text), maxText)
	assert.True(t, utf8.ValidString(text))
	assert.True(t, strings.HasPrefix(text, "éé"))
	assert.True(t, strings.HasSuffix(text, textcut.Mark), "a reader sees that it is not the whole text")
}

// A handler that ignores its context: its process is killed at the limit, the goroutine count is
// back to what it was, the job goes on as a retry for "timeout" and is dead on its last attempt. No
// attempt runs beside another.
func TestADeafJobIsStoppedWithItsProcess_Row21(t *testing.T) {
	pool, dir := startPool(t), t.TempDir()
	before := runtime.NumGoroutine()
	h := handlerOf(t, pool, "stuck", 200*time.Millisecond)
	d, attempts := untilFinished(t, quiet(), h, newJob(t, "stuck", order{Dir: dir}, 3))
	assert.Equal(t, 3, attempts)
	assert.Equal(t, job.Dead, d.Outcome)
	assert.Equal(t, job.ReasonTimeout, d.Reason)
	assert.Equal(t, 3, d.Envelope.Attempt)

	ran := runs(t, dir)
	require.Len(t, ran, 6, "three lines")
	pids := map[string]bool{}
	for i := 0; i < len(ran); i += 2 {
		assert.Equal(t, "run", ran[i], "no attempt ran beside another")
		pids[ran[i+1]] = true
	}
	assert.Len(t, pids, 3, "each attempt had a process of its own")
	assert.Eventually(t, func() bool { return runtime.NumGoroutine()-1 <= before }, // one runs this function
		testsync.WaitLimit, time.Millisecond, "the goroutines end")
}

// A job that always gets its process killed is dead once its attempts are used up, with the reason
// that says so.
func TestAJobThatKillsItsProcessIsDeadAfterItsAttempts_Row29(t *testing.T) {
	t.Parallel()
	pool, dir := startPool(t), t.TempDir()
	r := quiet()
	var last job.Event
	r.OnEvent = func(ev job.Event) { last = ev }
	d, attempts := untilFinished(t, r, handlerOf(t, pool, "exit", time.Minute), newJob(t, "exit", order{Dir: dir}, 3))
	assert.Equal(t, 3, attempts)
	assert.Len(t, runs(t, dir), 6, "three lines")
	assert.Equal(t, job.Dead, d.Outcome)
	assert.Equal(t, job.ReasonCrashed, d.Reason)
	assert.Equal(t, job.EventDead, last.Kind)
	assert.Equal(t, job.ReasonCrashed, last.Reason)
}

func TestAKilledWorkerIsACrash(t *testing.T) {
	t.Parallel()
	pool, dir, rendezvous := startPool(t), t.TempDir(), testsync.NewRendezvous(t)
	var wg sync.WaitGroup
	var d job.Decision
	wg.Go(func() {
		e := newJob(t, "stuck", order{Dir: dir, Begun: rendezvous.Addr}, 3)
		d = quiet().Decide(t.Context(), handlerOf(t, pool, "stuck", time.Minute), e)
	})
	begun := rendezvous.Next()
	begun.Release("")
	require.NoError(t, syscall.Kill(begun.PID, syscall.SIGKILL))
	wg.Wait()
	assert.Equal(t, job.Requeued, d.Outcome)
	assert.Equal(t, job.ReasonCrashed, d.Reason)
	assert.ErrorContains(t, d.Err, "signal 9")
}

// The Runner's time limit ends the handler's context in the worker.
func TestTheRunnersLimitReachesTheWorker(t *testing.T) {
	t.Parallel()
	pool := startPool(t)
	r := quiet()
	r.Timeout = 200 * time.Millisecond
	d := r.Decide(t.Context(), handlerOf(t, pool, "stops", time.Minute), newJob(t, "stops", order{}, 3))
	assert.Equal(t, job.Requeued, d.Outcome)
	assert.Equal(t, job.ReasonTimeout, d.Reason)
	if d.Abandoned != nil {
		<-d.Abandoned
	}
	result := handlerOf(t, pool, "answer", time.Minute).Handle(t.Context(), newJob(t, "answer", order{What: "success"}, 3))
	assert.Equal(t, job.KindSuccess, result.Kind(), "the slot is free again: %v", result.Err())
}

// Which timer is first must not matter: the worker's, the call's or the context's own.
func TestADeadlineIsTheContextsEndWhicheverTimerIsFirst(t *testing.T) {
	t.Parallel()
	fails := func(err *task.Error) job.HandleFunc {
		return func(ctx context.Context, _ job.Envelope) job.Result { return failed(ctx, nil, err) }
	}
	answers := func(a answer) job.HandleFunc {
		a.HasErr, a.Text, a.CallerEnded = true, "down", true
		return func(ctx context.Context, _ job.Envelope) job.Result { return answered(ctx, a) }
	}
	for name, early := range map[string]job.HandleFunc{
		"the call": fails(&task.Error{
			Status: task.ErrSockTimeout, Delivery: task.NotRun, Err: context.DeadlineExceeded}),
		"the worker, before the job ran": fails(&task.Error{Status: task.ErrPackageExpire, Delivery: task.NotRun}),
		"the worker, the job gave up":    answers(answer{Kind: job.KindDefer, Reason: job.ReasonInterrupted}),
		"the worker, the job failed":     answers(answer{Kind: job.KindRetry}),
	} {
		t.Run(name, func(t *testing.T) {
			r := quiet()
			r.Timeout = 50 * time.Millisecond
			d := r.Decide(t.Context(), job.Func("early", early), newJob(t, "early", order{}, 3))
			assert.Equal(t, job.Requeued, d.Outcome)
			assert.Equal(t, job.ReasonTimeout, d.Reason)
			assert.Equal(t, 2, d.Envelope.Attempt)
		})
	}
}

// The caller's end reaches the handler, which gives up; the attempt is not counted.
func TestAnInterruptedJobKeepsItsAttemptInThePool_Row24(t *testing.T) {
	t.Parallel()
	pool, dir, rendezvous := startPool(t), t.TempDir(), testsync.NewRendezvous(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var d job.Decision
	wg.Go(func() {
		e := newJob(t, "stops", order{Dir: dir, Begun: rendezvous.Addr}, 3)
		d = quiet().Decide(ctx, handlerOf(t, pool, "stops", time.Minute), e)
	})
	rendezvous.Next().Release("")
	cancel()
	wg.Wait()
	assert.Equal(t, job.Deferred, d.Outcome)
	assert.Equal(t, job.ReasonInterrupted, d.Reason)
	assert.Equal(t, 1, d.Envelope.Attempt)
	assert.Zero(t, pool.Status()[0].Lost)
}

// A job that was given up and ignores its context keeps its caller until its process is stopped.
// The hard limit must not pass before the lease is lost, a moment after the job began.
func TestALostLeaseWaitsUntilTheJobIsStopped(t *testing.T) {
	t.Parallel()
	pool, dir, rendezvous := startPool(t), t.TempDir(), testsync.NewRendezvous(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var wg sync.WaitGroup
	var d job.Decision
	wg.Go(func() {
		e := newJob(t, "stuck", order{Dir: dir, Begun: rendezvous.Addr}, 3)
		d = quiet().Decide(ctx, handlerOf(t, pool, "stuck", 5*time.Second), e)
	})
	rendezvous.Next().Release("")
	cancel(job.ErrLeaseLost)
	wg.Wait()
	assert.Equal(t, job.Unsettled, d.Outcome)
	alone, err := os.Open(filepath.Join(dir, "alone"))
	require.NoError(t, err)
	defer alone.Close()
	assert.NoError(t, syscall.Flock(int(alone.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), "the job is gone")
}

func TestWhatDidNotRunIsDeferred(t *testing.T) {
	t.Parallel()
	pool, dir, rendezvous := startPool(t), t.TempDir(), testsync.NewRendezvous(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wg.Go(func() {
		e := newJob(t, "stops", order{Dir: dir, Begun: rendezvous.Addr}, 3)
		handlerOf(t, pool, "stops", time.Minute).Handle(ctx, e)
	})
	rendezvous.Next().Release("")

	t.Run("busy", func(t *testing.T) {
		h := handlerOf(t, pool, "answer", 0)
		h.(*carrier).slotWait = 10 * time.Millisecond
		r := quiet()
		d := r.Decide(t.Context(), h, newJob(t, "answer", order{What: "success"}, 3))
		assert.Equal(t, job.Deferred, d.Outcome)
		assert.Equal(t, busyDelay, d.Delay)
		assert.Equal(t, 1, d.Envelope.Attempt)
		assert.ErrorIs(t, d.Err, task.ErrProcessBusy)
	})
	t.Run("its worker died before it began", func(t *testing.T) {
		result := failed(t.Context(), nil, &task.Error{Status: task.ErrSockTimeout, Delivery: task.NotRun})
		delay, _ := result.Delay()
		assert.Equal(t, job.KindDefer, result.Kind())
		assert.Equal(t, busyDelay, delay, "its successor is there in a moment")
	})
	t.Run("not started", func(t *testing.T) {
		cold, err := task.New(task.Config{ServerName: "cold", TempDir: t.TempDir()})
		require.NoError(t, err)
		result := handlerOf(t, cold, "answer", 0).Handle(t.Context(), newJob(t, "answer", order{}, 3))
		assert.Equal(t, job.KindDefer, result.Kind())
		assert.ErrorIs(t, result.Err(), task.ErrNotStarted)
	})
	t.Run("too large", func(t *testing.T) {
		e := newJob(t, "answer", order{What: strings.Repeat("x", 3<<20)}, 3)
		result := handlerOf(t, pool, "answer", 0).Handle(t.Context(), e)
		assert.Equal(t, job.KindDefer, result.Kind())
		assert.ErrorIs(t, result.Err(), task.ErrPackageTooLarge)
	})
}

func TestNoLockFilesAreLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	pool := startPool(t)
	h := handlerOf(t, pool, "answer", 0)
	for range 5 {
		h.Handle(t.Context(), newJob(t, "answer", order{What: "success"}, 3))
	}
	left, err := filepath.Glob(filepath.Join(dir, "taskd-job-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAJobThatWasGivenUpDoesNotStart(t *testing.T) {
	t.Parallel()
	given, err := newRunLock()
	require.NoError(t, err)
	release, ok := lockForRun(given.path())
	require.True(t, ok)
	_, ok = lockForRun(given.path())
	assert.False(t, ok, "one run at a time")

	waited := make(chan struct{})
	go func() {
		given.wait()
		close(waited)
	}()
	select {
	case <-waited:
		t.Fatal("the job still runs")
	case <-time.After(20 * time.Millisecond):
	}
	release()
	<-waited
	_, ok = lockForRun(given.path())
	assert.False(t, ok)
	given.close()
	_, ok = lockForRun(given.path())
	assert.False(t, ok)
}

func TestAWorkerOfAnotherBuildDefersWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	given, err := newRunLock()
	require.NoError(t, err)
	defer given.close()
	empty, err := job.NewRegistry()
	require.NoError(t, err)
	e, err := newJob(t, "answer", order{}, 3).Encode()
	require.NoError(t, err)
	a, err := worker{empty}.run(t.Context(), request{Envelope: string(e), RunLock: given.path()})
	require.NoError(t, err)
	assert.Equal(t, job.KindDefer, a.result().Kind())
	assert.ErrorContains(t, a.result().Err(), "answer")
	_, err = worker{empty}.run(t.Context(), request{Envelope: string(e), RunLock: filepath.Join(t.TempDir(), "none")})
	assert.True(t, errors.Is(err, errGivenUp))
}

func BenchmarkHandle(b *testing.B) {
	h := handlerOf(b, startPool(b), "answer", time.Minute)
	e := newJob(b, "answer", order{What: "success"}, 5)
	b.ReportAllocs()
	for b.Loop() {
		if r := h.Handle(b.Context(), e); r.Kind() != job.KindSuccess {
			b.Fatal(r.Err())
		}
	}
}

// A job counts an attempt when its process was lost, but not where another job or the pool's end
// was why.
func TestALossThatIsNotTheJobsDoingCostsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  *task.Error
		want job.Outcome
	}{
		"another job's hard limit": {&task.Error{Reason: task.ReasonHardLimit}, job.Deferred},
		"the end of the pool":      {&task.Error{Reason: task.ReasonShutdown}, job.Deferred},
		"the pool cut the call":    {&task.Error{Err: task.ErrClosed}, job.Deferred},
		"a signal":                 {&task.Error{Reason: task.ReasonKilled}, job.Requeued},
		"a drain that it outlived": {&task.Error{Reason: task.ReasonDrainTimeout}, job.Requeued},
		"not known":                {&task.Error{}, job.Requeued},
	} {
		t.Run(name, func(t *testing.T) {
			given, err := newRunLock()
			require.NoError(t, err)
			defer given.close()
			c.err.Status, c.err.Delivery = task.ErrSockTimeout, task.MayHaveRun
			h := job.Func("lost", func(ctx context.Context, _ job.Envelope) job.Result { return failed(ctx, given, c.err) })
			d := quiet().Decide(t.Context(), h, newJob(t, "lost", order{}, 3))
			assert.Equal(t, c.want, d.Outcome)
			if c.want == job.Deferred {
				assert.Equal(t, job.ReasonInterrupted, d.Reason)
				assert.Equal(t, 1, d.Envelope.Attempt)
				assert.Zero(t, d.Delay)
			} else {
				assert.Equal(t, job.ReasonCrashed, d.Reason)
			}
		})
	}
}
