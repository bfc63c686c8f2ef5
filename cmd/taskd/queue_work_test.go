package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
)

// modes are where a worker runs its jobs.
var modes = map[string][]string{"in process": nil, "in a pool": {"--pool", "--concurrency", "2"}}

// kill -9 worker: a job with attempts left must be retried with the attempt counted, not dead-lettered at attempt 1.
func TestAKilledWorkersCommandIsGoneAndItsJobRunsAgain_Row12(t *testing.T) {
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			j := newJobs(t)
			g := j.gate()
			id := j.push(g.script())
			flags := append([]string{"work", "--allow-exec", "sh", "--lease", "1s", "--max", "1"}, flags...)
			first := j.start(flags...)
			pid := g.reached()
			first.signal(syscall.SIGKILL)
			assertGone(t, pid)

			second := j.start(flags...)
			assert.NotEqual(t, pid, g.reached())
			got := j.inspect(id).Job
			assert.Equal(t, 2, got.Attempts)
			assert.Equal(t, 1, got.Crashes)
			g.open()
			code, stdout, stderr := second.wait()
			assert.Zero(t, code, stderr)
			assert.Contains(t, stdout, "1 done")
			assert.Zero(t, j.size().Size)
			assert.Empty(t, j.failed())
		})
	}
}

// SIGTERM mid-job: attempt unchanged, errors empty, available at once.
func TestTheEndOfAWorkerGivesItsJobBack_Row24(t *testing.T) {
	for name, flags := range modes {
		for drain, signals := range map[string][]os.Signal{"100ms": {syscall.SIGTERM}, "1h": {syscall.SIGTERM, syscall.SIGINT}} {
			t.Run(name+", signals: "+strconv.Itoa(len(signals)), func(t *testing.T) {
				j := newJobs(t)
				g := j.gate()
				id := j.push(g.script())
				w := j.start(append([]string{"work", "--allow-exec", "sh", "--drain-timeout", drain}, flags...)...)
				pid := g.reached()
				for _, sig := range signals {
					w.signal(sig)
				}
				code, stdout, stderr := w.wait()
				assert.Zero(t, code, stderr)
				assert.Contains(t, stdout, "0 done, 0 to be tried again, 0 dead, 1 given back")
				assertGone(t, pid)
				got := j.inspect(id).Job
				require.NotNil(t, got)
				assert.Equal(t, "ready", got.State)
				assert.Zero(t, got.Attempts)
				assert.Empty(t, got.Failures)
			})
		}
	}
}

func TestADrainLetsTheJobFinish(t *testing.T) {
	j := newJobs(t)
	g := j.gate()
	j.push(g.script())
	w := j.start("work", "--allow-exec", "sh")
	g.reached()
	w.signal(syscall.SIGINT)
	g.open()
	code, stdout, stderr := w.wait()
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "1 done")
}

func TestAStoppedWorkersCommandIsGoneBeforeItsLeaseLapses(t *testing.T) {
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			j := newJobs(t)
			g := j.gate()
			id := j.push(g.script())
			w := j.start(append([]string{"work", "--allow-exec", "sh", "--lease", "6s"}, flags...)...)
			pid := g.reached()
			w.signal(syscall.SIGSTOP)
			assertGone(t, pid)
			assert.Less(t, time.Now(), j.inspect(id).Job.LeaseUntil)
		})
	}
}

func TestACancelledJobsCommandIsGone(t *testing.T) {
	j := newJobs(t)
	g := j.gate()
	id := j.push(g.script())
	w := j.start("work", "--allow-exec", "sh", "--max", "1")
	pid := g.reached()
	j.ok("cancel", id)
	assertGone(t, pid)
	code, stdout, stderr := w.wait()
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "0 done, 0 to be tried again, 0 dead, 0 given back, 1 cancelled, 0 lost")
	assert.Zero(t, j.size().Size)
	assert.Empty(t, j.failed())
}

func TestAPauseHoldsForWorkersOfOtherProcesses(t *testing.T) {
	j := newJobs(t)
	j.ok("pause", "--queue", "mail")
	j.push("true", "--queue", "mail")
	w := j.start("work", "--queue", "mail,default", "--allow-exec", "sh")
	j.push("true")
	eventually(t, "what is not paused is done", func() bool { return j.size().Size == 1 })
	assert.Zero(t, j.work("--once", "--queue", "mail").Done)
	assert.Equal(t, 1, j.size().Ready)
	j.ok("resume", "--queue", "mail")
	eventually(t, "the paused queue goes on", func() bool { return j.size().Size == 0 })
	w.signal(syscall.SIGTERM)
	code, _, stderr := w.wait()
	assert.Zero(t, code, stderr)
}

func TestARestartReachesEveryWorker(t *testing.T) {
	j := newJobs(t)
	workers := []*process{j.start("work"), j.start("work", "--queue", "mail")}
	for _, w := range workers {
		w.line("takes jobs from")
	}
	// A worker that has taken a job has read what was asked for before.
	for _, name := range []string{"default", "mail"} {
		j.ok("push", "ftp", "{}", "--queue", name)
	}
	eventually(t, "both have begun", func() bool { return j.size().Size == 0 })
	j.ok("restart")
	for _, w := range workers {
		code, _, stderr := w.wait()
		assert.Equal(t, exitRestart, code, stderr)
	}
	assert.Equal(t, totals{}, j.work("--once"), "a worker that starts later is not meant")
}

func TestStrictQueuesGoInOrder(t *testing.T) {
	j := newJobs(t)
	log := filepath.Join(j.dir, "log")
	for _, name := range []string{"b", "a", "b", "a"} {
		j.push("printf "+name+" >> "+log, "--queue", name)
	}
	j.work("--once", "--queue", "a,b", "--concurrency", "1")
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "aabb", string(text))
}

func TestWeightedQueuesAreAllWorked(t *testing.T) {
	j := newJobs(t)
	j.push("true", "--queue", "a")
	j.push("true", "--queue", "b")
	assert.Equal(t, 2, j.work("--once", "--queue", "a:3,b:1").Done)
	code, _, stderr := j.run("work", "--once", "--queue", "a:0")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "a weight must be")
}

func TestATimeLimitIsTheJobsOwnElseTheWorkers(t *testing.T) {
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			j := newJobs(t)
			j.push("sleep 300", "--tries", "1")
			j.push("sleep 0.2", "--tries", "1", "--timeout", "1m")
			did := j.work(append([]string{"--once", "--allow-exec", "sh", "--timeout", "100ms"}, flags...)...)
			assert.Equal(t, totals{Done: 1, Dead: 1}, did)
			letters := j.failed()
			require.Len(t, letters, 1)
			assert.Equal(t, job.ReasonTimeout, letters[0].Reason)
			assert.Contains(t, letters[0].Error, "100ms")
			assert.Contains(t, letters[0].Payload, "sleep 300")
		})
	}
}

func TestExecJobs(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		want    totals
		words   string // of the dead letter
	}{
		"exit code 0":         {`{"argv": ["sh", "-c", "true"]}`, totals{Done: 1}, ""},
		"another exit code":   {`{"argv": ["sh", "-c", "echo why >&2; exit 3"]}`, totals{Again: 1}, "sh: exit status 3: why"},
		"a signal":            {`{"argv": ["sh", "-c", "kill -TERM $$"]}`, totals{Again: 1}, "sh: signal: terminated"},
		"not allowed":         {`{"argv": ["ls"]}`, totals{Dead: 1}, "--allow-exec"},
		"a relative path":     {`{"argv": ["./sh"]}`, totals{Dead: 1}, "absolute path"},
		"no command":          {`{}`, totals{Dead: 1}, "argv"},
		"not there":           {`{"argv": ["missing"]}`, totals{Again: 1}, "not found"},
		"a folder that is no": {`{"argv": ["sh", "-c", ""], "dir": "/nonexistent"}`, totals{Again: 1}, "/nonexistent"},
		"input and variable":  {`{"argv": ["sh", "-c", "test $(cat)$X = ab"], "stdin": "a", "env": {"X": "b"}}`, totals{Done: 1}, ""},
		"a limit of its own":  {`{"argv": ["sh", "-c", "sleep 60"]}`, totals{Again: 1}, "timed out after 100ms"},
		"its own group ends":  {`{"argv": ["sh", "-c", "kill -KILL 0"]}`, totals{Again: 1}, "sh was killed with its guard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobs(t)
			flags := []string{"push", "exec", c.payload, "--delay", "0s"}
			if strings.Contains(c.words, "100ms") {
				flags = append(flags, "--timeout", "100ms")
			}
			id := j.ok(flags...)
			assert.Equal(t, c.want, j.work("--once", "--allow-exec", "missing"))
			switch {
			case c.want.Dead > 0:
				assert.Contains(t, j.failed()[0].Error, c.words)
			case c.want.Again > 0:
				assert.Contains(t, j.inspect(id).Job.Failures[0].Error, c.words)
			}
		})
	}
}

func TestACommandThatPrintsNoTextDies(t *testing.T) {
	onEveryDatabase(t, func(j *jobs) {
		j.push(`printf 'a\0b\377c' >&2; exit 3`, "--tries", "1")
		assert.Equal(j.t, totals{Dead: 1}, j.work("--once"))
		require.Len(j.t, j.failed(), 1)
		assert.Equal(j.t, "sh: exit status 3: a\uFFFDbc", j.failed()[0].Error)
		assert.Zero(j.t, j.size().Size)
	})
}

func TestWhatACommandLeavesBehindIsGone(t *testing.T) {
	j := newJobs(t)
	pids := filepath.Join(j.dir, "pids")
	j.push("sleep 60 & echo $! > " + pids)
	assert.Equal(t, 1, j.work("--once").Done)
	assertGone(t, readPID(t, pids))
}

func TestACommandDoesNotSeeTheDatabase(t *testing.T) {
	j := newJobs(t)
	t.Setenv("TASKD_DSN", j.dsn)
	j.push(`test -z "$TASKD_DSN"`)
	assert.Equal(t, 1, j.work("--once").Done)
}

func TestHTTPJobs(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		want   job.Kind
	}{
		"created":             {201, job.KindSuccess},
		"no such page":        {404, job.KindFail},
		"an error over there": {503, job.KindRetry},
		"somewhere else":      {302, job.KindRetry},
	} {
		t.Run(name, func(t *testing.T) {
			var body map[string]any
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, http.MethodPost, r.Method)
				assert.Equal(t, "j1", r.Header.Get("Idempotency-Key"))
				assert.Equal(t, "v", r.Header.Get("X-Own"))
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			got := post(t, t.Context(), hook{URL: server.URL, Body: []byte(`{"n": 1}`), Headers: map[string]string{"X-Own": "v"}})
			assert.Equal(t, c.want, got.Kind(), got.Err())
			assert.EqualValues(t, 1, body["n"])
		})
	}
}

func TestAnHTTPJobGivesUpAfterItsTimeout(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	got := post(t, t.Context(), hook{URL: server.URL, Timeout: "20ms"})
	assert.Equal(t, job.KindRetry, got.Kind())
	assert.ErrorContains(t, got.Err(), "no answer within 20ms")
}

func TestAnHTTPJobThatCannotBeReadIsFinal(t *testing.T) {
	for name, h := range map[string]hook{
		"no address":        {},
		"another protocol":  {URL: "ftp://example.org/"},
		"a time of no unit": {URL: "http://example.org/", Timeout: "5"},
	} {
		assert.Equal(t, job.KindFail, post(t, t.Context(), h).Kind(), name)
	}
	refused := post(t, t.Context(), hook{URL: "http://u:secret@127.0.0.1:1/"})
	assert.Equal(t, job.KindRetry, refused.Kind())
	assert.NotContains(t, refused.Err().Error(), "secret")
}

func post(t *testing.T, ctx context.Context, h hook) job.Result {
	t.Helper()
	e, err := job.New("http", h, nil, job.RetryPolicy{})
	require.NoError(t, err)
	e.JobID = "j1"
	return httpJobs().Handle(ctx, e)
}
