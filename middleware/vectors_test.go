package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

func loadVectors(t *testing.T, file string, v any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, v))
}

// runVectors runs each of the named cases, and fails when a file has one that is neither run nor
// left out.
func runVectors[C any](
	t *testing.T, cases []C, name func(C) string, tests map[string]func(*testing.T, C), leftOut map[string]string,
) {
	require.NotEmpty(t, cases)
	for _, c := range cases {
		t.Run(name(c), func(t *testing.T) {
			if why, ok := leftOut[name(c)]; ok {
				t.Skip(why)
			}
			test, ok := tests[name(c)]
			require.True(t, ok, "no test for this case")
			synctest.Test(t, func(t *testing.T) { test(t, c) })
		})
	}
}

type pipelineCase struct {
	Name       string
	Middleware []string
	Core       string
	Trace      []string `json:"expect_trace"`
	Expect     json.RawMessage
}

func TestPipelineVectors(t *testing.T) {
	t.Parallel()
	var file struct{ Cases []pipelineCase }
	loadVectors(t, "middleware_pipeline.json", &file)
	own := map[string]func(*testing.T, pipelineCase){
		// A failure is a Result here: the code after next sees it, in every layer.
		"core_fails_through_onion": func(t *testing.T, c pipelineCase) {
			c.Trace = []string{"A:before", "B:before", "C:before", "core", "C:after", "B:after", "A:after"}
			checkPipeline(t, c)
		},
		"same_job_object_everywhere": func(t *testing.T, _ pipelineCase) { eachLayerGetsWhatTheOneBeforePassesOn(t) },
	}
	tests := map[string]func(*testing.T, pipelineCase){}
	for _, c := range file.Cases {
		tests[c.Name] = checkPipeline
	}
	for name, test := range own {
		tests[name] = test
	}
	runVectors(t, file.Cases, func(c pipelineCase) string { return c.Name }, tests, map[string]string{
		"non_middleware_entries": "the compiler refuses other values in the list; job tests that a nil layer is left out",
	})
}

func checkPipeline(t *testing.T, c pipelineCase) {
	var trace []string
	add := func(s string) { trace = append(trace, s) }
	inner := &core{handle: func(context.Context, job.Envelope) job.Result {
		add("core")
		if text, ok := strings.CutPrefix(c.Core, "fail:"); ok {
			return job.Retry(errors.New(text))
		}
		return job.Success()
	}}
	var layers []middleware.Middleware
	for _, m := range c.Middleware {
		layers = append(layers, traced(t, m, add))
	}
	r := call(t.Context(), envelope("J"), inner, layers...)

	assert.Equal(t, c.Trace, append([]string{}, trace...))
	var expect struct {
		Error      *string
		CoreCalled *bool `json:"core_called"`
	}
	require.NoError(t, json.Unmarshal(c.Expect, &expect))
	if expect.Error == nil {
		assert.NoError(t, r.Err())
	} else {
		assert.EqualError(t, r.Err(), *expect.Error)
	}
	if expect.CoreCalled != nil {
		assert.Equal(t, *expect.CoreCalled, slices.Contains(trace, "core"))
	}
}

// traced is the layer that a vector calls "kind:name".
func traced(t *testing.T, spec string, add func(string)) middleware.Middleware {
	kind, name, _ := strings.Cut(spec, ":")
	layers := map[string]func(context.Context, job.Envelope, job.HandleFunc) job.Result{
		"log": func(ctx context.Context, e job.Envelope, next job.HandleFunc) job.Result {
			add(name + ":before")
			r := next(ctx, e)
			add(name + ":after")
			return r
		},
		"log_finally": func(ctx context.Context, e job.Envelope, next job.HandleFunc) job.Result {
			add(name + ":before")
			defer func() { add(name + ":after") }()
			return next(ctx, e)
		},
		"block": func(context.Context, job.Envelope, job.HandleFunc) job.Result {
			add(name + ":blocked")
			return job.Success()
		},
		"throw": func(context.Context, job.Envelope, job.HandleFunc) job.Result {
			return job.Retry(errors.New(name))
		},
		"twice": func(ctx context.Context, e job.Envelope, next job.HandleFunc) job.Result {
			next(ctx, e)
			return next(ctx, e)
		},
		"swallow": func(ctx context.Context, e job.Envelope, next job.HandleFunc) job.Result {
			next(ctx, e)
			return job.Success()
		},
	}
	layer, ok := layers[kind]
	require.True(t, ok, "kind of layer %q", kind)
	return func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result { return layer(ctx, e, next) }
	}
}

func eachLayerGetsWhatTheOneBeforePassesOn(t *testing.T) {
	rename := func(to string) middleware.Middleware {
		return func(next job.HandleFunc) job.HandleFunc {
			return func(ctx context.Context, e job.Envelope) job.Result {
				e.JobID += to
				return next(ctx, e)
			}
		}
	}
	var got string
	inner := &core{handle: func(_ context.Context, e job.Envelope) job.Result {
		got = e.JobID
		return job.Success()
	}}
	s := middleware.NewMemory(nil)
	call(t.Context(), envelope("J"), inner, rename("/a"), middleware.UniqueJob(s, nil), rename("/b"))
	assert.Equal(t, "job_1/a/b", got)
}

// testdata/queuety_worker.json holds the two cases of its file that are about layers. The others
// are not here: back-off lists and claims, attempts, stale jobs, unique dispatch and the
// synchronous driver are the queue's, settings and the pool's size the daemon's.
func TestWorkerVectors(t *testing.T) {
	t.Parallel()
	type workerCase struct{ Event, Name string }
	var file struct {
		Attempts     struct{ Cases []workerCase }
		SyncDispatch struct{ Cases []workerCase } `json:"sync_dispatch"`
	}
	loadVectors(t, "queuety_worker.json", &file)
	cases := append(file.Attempts.Cases, file.SyncDispatch.Cases...)
	runVectors(t, cases, func(c workerCase) string { return c.Event + c.Name }, map[string]func(*testing.T, workerCase){
		"middleware skips the job": func(t *testing.T, _ workerCase) {
			s := middleware.NewMemory(nil)
			held(t, s, "unique:J", time.Minute)
			d := decide(t, envelope("J"), succeeds(), middleware.UniqueJob(s, nil))
			assert.Equal(t, job.Skipped.String(), d.Outcome.String())
		},
	}, map[string]string{
		"middleware": "the synchronous driver is the queue's",
	})
}
