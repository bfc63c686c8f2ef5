package pool_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testkit"
)

// The cases of testdata/task_pool.json. Those of "selection" are tests
// of sharedstate, those of "framing" of protocol, "validation_order" of worker.

type poolVectors struct {
	Defaults map[string]any `json:"defaults"`
	Codes    []struct {
		Name    string
		Value   int
		Message *string
	} `json:"status_codes"`
	Config []struct {
		Set    map[string]int
		Expect string
	}
	SocketPath struct {
		Cases []struct {
			TempDir, ServerName string
			WorkerID            int `json:"workerId"`
			Bytes               int
			Expect              string
		}
	} `json:"socket_path"`
	Admission []vector
	Timeouts  []vector
	Results   []vector
	Lifecycle []vector
	Fields    []string `json:"status_fields"`
}

type vector struct{ Name string }

func readVectors(t *testing.T) poolVectors {
	t.Helper()
	b, err := os.ReadFile("testdata/task_pool.json")
	require.NoError(t, err)
	var v poolVectors
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

// runNamed runs the test of each vector; a vector without a test fails, and so
// does a test without a vector.
func runNamed(t *testing.T, vectors []vector, tests map[string]func(t *testing.T)) {
	seen := map[string]bool{}
	for _, v := range vectors {
		seen[v.Name] = true
		test, ok := tests[v.Name]
		if !assert.True(t, ok, "vector %s has no test", v.Name) {
			continue
		}
		t.Run(v.Name, test)
	}
	for name := range tests {
		assert.True(t, seen[name], "test %s has no vector", name)
	}
}

func TestVectorsDefaults(t *testing.T) {
	v := readVectors(t)
	p, err := task.New(task.Config{TempDir: shortDir(t)})
	require.NoError(t, err)
	c := p.Config()
	assert.EqualValues(t, v.Defaults["workerNum"], c.WorkerNum)
	assert.EqualValues(t, v.Defaults["maxRunningNum"], c.MaxRunningNum)
	assert.EqualValues(t, v.Defaults["maxPackageSize"], c.MaxPackageSize)
	assert.EqualValues(t, v.Defaults["pushTimeOut_async_s"], c.PushTimeout.Seconds())
	assert.EqualValues(t, v.Defaults["serverName"], c.ServerName)
	assert.Empty(t, c.Tasks)
}

func TestVectorsStatusCodes(t *testing.T) {
	codes := map[string]task.Status{
		"ERROR_PROCESS_BUSY":       task.ErrProcessBusy,
		"ERROR_PROTOCOL_ERROR":     task.ErrProtocol,
		"ERROR_ILLEGAL_PACKAGE":    task.ErrIllegalPackage,
		"ERROR_TASK_ERROR":         task.ErrTask,
		"ERROR_PACKAGE_EXPIRE":     task.ErrPackageExpire,
		"ERROR_SOCK_TIMEOUT":       task.ErrSockTimeout,
		"ERROR_PACKAGE_TOO_LARGE":  task.ErrPackageTooLarge,
		"ERROR_RESPONSE_TOO_LARGE": task.ErrResponseTooLarge,
	}
	v := readVectors(t)
	assert.Len(t, v.Codes, len(codes))
	for _, c := range v.Codes {
		t.Run(c.Name, func(t *testing.T) {
			s, ok := codes[c.Name]
			require.True(t, ok)
			assert.Equal(t, c.Value, int(s))
			assert.NotEmpty(t, s.Message())
			if c.Message != nil {
				assert.Equal(t, *c.Message, s.Message())
			}
		})
	}
}

func TestVectorsConfig(t *testing.T) {
	for _, c := range readVectors(t).Config {
		for field, value := range c.Set {
			t.Run(field+"="+json.Number(jsonInt(value)).String(), func(t *testing.T) {
				cfg := task.Config{TempDir: shortDir(t)}
				f := reflect.ValueOf(&cfg).Elem().FieldByName(map[string]string{
					"workerNum": "WorkerNum", "maxPackageSize": "MaxPackageSize",
				}[field])
				f.SetInt(int64(value))
				_, err := task.New(cfg)
				switch {
				case value == 0:
					// Zero in a Config is the default. An explicit 0 in a flag or a
					// variable is refused, which cmd/taskd tests.
					assert.NoError(t, err)
				case c.Expect == "ok":
					assert.NoError(t, err)
				default:
					var e *task.ConfigError
					assert.True(t, errors.As(err, &e), "got %v", err)
				}
			})
		}
	}
}

func jsonInt(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestVectorsSocketPath(t *testing.T) {
	for _, c := range readVectors(t).SocketPath.Cases {
		t.Run(jsonInt(c.Bytes)+" bytes for worker "+jsonInt(c.WorkerID), func(t *testing.T) {
			assert.Len(t, filepath.Join(c.TempDir, c.ServerName+".TaskWorker."+jsonInt(c.WorkerID)+".sock"), c.Bytes)
			_, err := task.New(task.Config{TempDir: c.TempDir, ServerName: c.ServerName, WorkerNum: c.WorkerID + 1})
			if c.Expect == "ok" {
				assert.NoError(t, err)
				return
			}
			var e *task.ConfigError
			require.True(t, errors.As(err, &e), "got %v", err)
			assert.Contains(t, err.Error(), jsonInt(c.Bytes))
			assert.Contains(t, err.Error(), "100")
		})
	}
}

func TestVectorsAdmission(t *testing.T) {
	runNamed(t, readVectors(t).Admission, map[string]func(t *testing.T){
		"over_limit_race": func(t *testing.T) {
			// Two processes choose the only worker at the same moment: neither sees
			// the other's call in the table, so that the worker itself must decide.
			p := startPool(t, task.Config{WorkerNum: 1, MaxRunningNum: 1})
			m := testkit.NewMeeting(t)
			callers := []task.Caller{p.Task, dial(t, p), dial(t, p)}
			const rounds = 20
			for range rounds {
				var wg sync.WaitGroup
				results := make(chan error, len(callers))
				start := make(chan struct{})
				for _, c := range callers {
					wg.Go(func() {
						<-start
						_, err := c.Async(t.Context(), Meet{Addr: m.Addr})
						results <- err
					})
				}
				close(start)
				wg.Wait()
				close(results)
				accepted := 0
				for err := range results {
					if err == nil {
						accepted++
						continue
					}
					e := callError(t, err)
					assert.Equal(t, task.ErrProcessBusy, e.Status)
					assert.Equal(t, task.NotRun, e.Delivery)
				}
				assert.Equal(t, 1, accepted)
				assert.LessOrEqual(t, p.Status()[0].Running, 1)
				m.Next().Leave("")
				p.still()
			}
			assert.EqualValues(t, rounds, p.still().Success)
		},
		"limit_boundary": func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1, MaxRunningNum: 2})
			m := testkit.NewMeeting(t)
			for range 2 {
				_, err := p.Async(t.Context(), Meet{Addr: m.Addr})
				require.NoError(t, err)
			}
			_, err := p.Async(t.Context(), Meet{Addr: m.Addr})
			assert.ErrorIs(t, err, task.ErrProcessBusy)
			assert.Equal(t, 2, p.Status()[0].Running)
			m.Next().Leave("")
			m.Next().Leave("")
		},
		"slot_released_after_failure": func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1, MaxRunningNum: 1})
			_, err := p.Sync(t.Context(), Fail{Text: "raises"})
			require.ErrorIs(t, err, task.ErrTask)
			_, err = p.Sync(t.Context(), Echo{1})
			assert.NoError(t, err)
		},
	})
}

func TestVectorsTimeouts(t *testing.T) {
	// One caller's budgets are seen by the task, as Info.Deadline.
	budget := func(t *testing.T, p *pool, async bool, opts ...task.CallOption) (time.Duration, bool) {
		t.Helper()
		path := filepath.Join(p.dir, "deadline")
		os.Remove(path)
		start := time.Now()
		var err error
		if async {
			_, err = p.Async(context.Background(), DeadlineTo{path}, opts...)
		} else {
			_, err = p.Sync(context.Background(), DeadlineTo{path}, opts...)
		}
		require.NoError(t, err)
		var b []byte
		eventually(t, func() bool { b, err = os.ReadFile(path); return err == nil && len(b) > 0 }, func() string { return "no deadline was written" })
		var at time.Time
		require.NoError(t, at.UnmarshalText(b))
		return at.Sub(start), !at.IsZero()
	}
	about := func(t *testing.T, want, got time.Duration) {
		t.Helper()
		assert.InDelta(t, want.Seconds(), got.Seconds(), 0.9, "the budget")
	}
	p := startPool(t, task.Config{WorkerNum: 1})
	noOperation := func(t *testing.T) {
		// A time.Duration is neither NaN nor infinite; taskd's flags refuse such floats.
		for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			assert.False(t, f == float64(time.Duration(0)))
		}
	}
	runNamed(t, readVectors(t).Timeouts, map[string]func(t *testing.T){
		"async_default": func(t *testing.T) {
			d, ok := budget(t, p, true)
			require.True(t, ok)
			about(t, 5*time.Second, d)
		},
		"sync_default": func(t *testing.T) {
			d, ok := budget(t, p, false)
			require.True(t, ok)
			about(t, 3*time.Second, d)
		},
		"zero": func(t *testing.T) {
			_, ok := budget(t, p, false, task.WithTimeout(0))
			assert.False(t, ok)
		},
		"negative": func(t *testing.T) {
			_, ok := budget(t, p, true, task.WithTimeout(-1))
			assert.False(t, ok)
		},
		"nan":       noOperation,
		"inf":       noOperation,
		"minus_inf": noOperation,
		"shared_budget": func(t *testing.T) {
			// Encoding takes 200 ms of the second; what is left for the answer is less.
			start := time.Now()
			_, err := p.Sync(context.Background(), Slow{Encoding: SlowText{200 * time.Millisecond}, For: 5 * time.Second}, task.WithTimeout(time.Second))
			assert.ErrorIs(t, err, task.ErrSockTimeout)
			assert.InDelta(t, 1, time.Since(start).Seconds(), 0.15*float64(atRace(1)), "the whole delivery has one budget")
		},
		"expired_before_start": func(t *testing.T) {
			// The worker is stopped and reads after the deadline.
			p := startPool(t, task.Config{WorkerNum: 1})
			_, err := p.Sync(t.Context(), Echo{1})
			require.NoError(t, err)
			path := filepath.Join(p.dir, "mark")
			resume := stop(t, p.Status()[0].PID)
			_, err = p.Sync(t.Context(), Mark{path}, task.WithTimeout(100*time.Millisecond))
			assert.ErrorIs(t, err, task.ErrSockTimeout)
			resume()
			p.status(func(rows []task.WorkerStatus) bool { return rows[0].Expired == 1 })
			sum := p.still()
			assert.EqualValues(t, 1, sum.Fail)
			assert.NoFileExists(t, path)
		},
		"expired_while_running": func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1})
			m := testkit.NewMeeting(t)
			failed := make(chan error, 1)
			go func() {
				_, err := p.Sync(context.Background(), Meet{Addr: m.Addr, Ctx: true}, task.WithTimeout(briefly))
				failed <- err
			}()
			g := m.Next()
			e := callError(t, <-failed)
			assert.Equal(t, task.ErrSockTimeout, e.Status)
			assert.Equal(t, task.MayHaveRun, e.Delivery)
			g.Leave("done")
			assert.EqualValues(t, 1, p.still().Success, "a task that has begun is not cut")
		},
		"no_listener": func(t *testing.T) {
			// A caller that chose the worker before its socket was missed gets -7. Then
			// the worker is no longer chosen, and before long the path is back.
			p := startPool(t, task.Config{WorkerNum: 1})
			require.NoError(t, os.Remove(filepath.Join(p.dir, "p.TaskWorker.0.sock")))
			_, err := dial(t, p).Sync(t.Context(), Echo{1}, task.WithTimeout(500*time.Millisecond))
			if err != nil {
				e := callError(t, err)
				assert.Contains(t, []task.Status{task.ErrSockTimeout, task.ErrProcessBusy}, e.Status)
				assert.Equal(t, task.NotRun, e.Delivery)
			}
		},
	})
}
