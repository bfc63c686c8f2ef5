package queuetest

import (
	"embed"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

//go:embed testdata
var testdata embed.FS

func vector[T any](s *fixture.Fixture, name string) (v T) {
	s.Helper()
	data, err := testdata.ReadFile("testdata/" + name + ".json")
	require.NoError(s, err)
	require.NoError(s, json.Unmarshal(data, &v))
	return v
}

type timelineCase struct {
	Name  string
	Job   *timelineJob
	Steps []timelineStep
	// What must hold at the end.
	Expect            json.RawMessage
	ExpectRuns        *int   `json:"expect_runs"`
	ExpectAvailableAt *int64 `json:"expect_available_at"`
	Requires          string
}

type timelineJob struct {
	Tries   int
	Backoff any `json:"backoff_s"`
}

type timelineStep struct {
	T       float64
	Op      string
	Job     string
	Worker  string
	Delay   float64
	Error   string
	Expect  any
	Workers int
	Winners int `json:"expect_winners"`
}

type timelineEnd struct {
	Runs         *int
	BackoffCalls []int `json:"backoff_called_with"`
	FailedHook   *int  `json:"failed_hook_calls"`
	Size         *int64
	DeadCount    *int `json:"dead_count"`
	Dead         []struct{ Job, Exception string }
	HookSees     *bool  `json:"hook_sees_its_record"`
	Continues    *bool  `json:"worker_continues"`
	ReleaseDelay *int64 `json:"release_delay"`
	RunsAtMost   *int   `json:"runs_at_most"`
}

var vectors = []behaviour{
	{"timeline", func(s *fixture.Fixture) {
		v := vector[struct{ Cases []timelineCase }](s, "db_queue_timeline")
		for _, c := range v.Cases {
			if timelineElsewhere[c.Name] {
				continue
			}
			s.Run(c.Name, func(t *testing.T) {
				s := s.Sub(t)
				if len(c.Steps) > 0 {
					runTimeline(s, c)
					return
				}
				test := timelineCases[c.Name]
				require.NotNil(s, test, "the suite has no test for this case")
				test(s)
			})
		}
	}},
	{"backoff", func(s *fixture.Fixture) {
		v := vector[struct {
			Cases []struct {
				Name        string
				Expect      []struct{ N, S int }
				ExpectRange []struct{ N, Min, Max int } `json:"expect_range"`
			}
		}](s, "db_queue_backoff")
		for _, c := range v.Cases {
			s.Run(c.Name, func(t *testing.T) {
				s := s.Sub(t)
				base := map[string]float64{"tripling": 3, "doubling_with_jitter": 2}[c.Name]
				require.NotZero(s, base)
				sc := fixture.NewScript(s, &fixture.Script{Times: 9, Do: fixture.Fails, Wait: func(n int) time.Duration {
					return time.Duration(10*math.Pow(base, float64(n-1))) * time.Second
				}})
				_, err := s.Q.Push(s.Context(), sc.Job("A"))
				require.NoError(s, err)
				w := s.Worker(s.Q, fixture.ScriptedHandlers)
				next := func() int64 {
					require.Equal(s, 1, s.Drain(w))
					due := s.List()[0].AvailableAt.UnixMilli() - s.Now
					s.At(float64(s.Now+due-fixture.Epoch) / 1000)
					return due / 1000
				}
				for _, e := range c.Expect {
					assert.EqualValues(s, e.S, next(), "after failure %d", e.N)
				}
				for _, e := range c.ExpectRange {
					got := next()
					assert.GreaterOrEqual(s, got, int64(e.Min))
					assert.LessOrEqual(s, got, int64(e.Max))
				}
			})
		}
	}},
	{"commands", func(s *fixture.Fixture) { runCommands(s) }},
	{"sync driver", func(s *fixture.Fixture) { runSync(s) }},
	{"worker rules", func(s *fixture.Fixture) { runWorkerRules(s) }},
}

// runTimeline runs the steps of a case. Each worker stops after each of its steps.
func runTimeline(s *fixture.Fixture, c timelineCase) {
	sc := fixture.NewScript(s, &fixture.Script{Do: fixture.Held})
	if c.Job != nil {
		sc.Times = c.Job.Tries
		if c.Job.Backoff == "10*3^(n-1)" {
			sc.Wait = func(n int) time.Duration { return time.Duration(10*math.Pow(3, float64(n-1))) * time.Second }
		}
	}
	var opts []queue.WorkerOption
	if strings.Contains(c.Requires, "renews") {
		opts = append(opts, queue.RenewEvery(5*time.Millisecond))
	}
	workers := map[string]*fixture.Stepped{}
	for _, step := range c.Steps {
		if len(opts) > 0 {
			renewUpTo(s, step.T)
		}
		s.At(step.T)
		p := workers[step.Worker]
		if p == nil {
			p = s.Stepped(opts...)
			workers[step.Worker] = p
		}
		runStep(s, sc, p, step)
	}
	if c.ExpectRuns != nil {
		assert.Len(s, sc.Ran(), *c.ExpectRuns)
	}
	if c.ExpectAvailableAt != nil {
		var latest int64
		for _, info := range s.List() {
			latest = max(latest, info.AvailableAt.UnixMilli())
		}
		assert.Equal(s, fixture.Epoch+*c.ExpectAvailableAt*1000, latest)
	}
	if c.Expect != nil {
		checkEnd(s, sc, c.Expect)
	}
	for _, p := range workers {
		p.Leave()
	}
}

// runStep runs one step of the worker p.
func runStep(s *fixture.Fixture, sc *fixture.Script, p *fixture.Stepped, step timelineStep) {
	s.Helper()
	switch step.Op {
	case "push":
		_, err := s.Q.Push(s.Context(), sc.Job(step.Job), queue.Delay(time.Duration(step.Delay*float64(time.Second))))
		require.NoError(s, err)
	case "claim":
		want, _ := step.Expect.(string)
		require.Equal(s, want, p.Claim(), "claim of %s at %v s", step.Worker, step.T)
	case "claim_parallel":
		claimTogether(s, step.Workers, step.Winners)
	case "ok":
		p.End(nil)
		if step.Expect == "lease_lost" {
			assert.Equal(s, job.ReasonLeaseLost, p.Event(job.EventUnsettled).Reason)
		}
	case "err":
		err := errors.New("boom")
		if step.Error != "" {
			class, text, _ := strings.Cut(step.Error, ": ")
			err = fixture.Classed(class, text)
		}
		p.End(err)
	case "crash", "pause":
		if step.Op == "crash" {
			p.Leave()
		}
	case "size":
		assert.EqualValues(s, step.Expect, s.Counts("").Size(), "size at %v s", step.T)
	default:
		require.Fail(s, "unknown step "+step.Op)
	}
}

func checkEnd(s *fixture.Fixture, sc *fixture.Script, raw json.RawMessage) {
	var end timelineEnd
	require.NoError(s, json.Unmarshal(raw, &end))
	letters := s.DeadLetters()
	if end.Runs != nil {
		assert.Len(s, sc.Ran(), *end.Runs)
	}
	if end.BackoffCalls != nil {
		assert.Equal(s, end.BackoffCalls, append([]int{}, sc.Asked()...))
	}
	if end.FailedHook != nil {
		assert.Len(s, sc.Failures(), *end.FailedHook)
	}
	if end.Size != nil {
		assert.Equal(s, *end.Size, s.Counts("").Size())
	}
	if end.DeadCount != nil {
		assert.Len(s, letters, *end.DeadCount)
	}
	for i, want := range end.Dead {
		require.Greater(s, len(letters), i)
		assert.Equal(s, want.Exception, letters[i].Exception())
	}
}

// renewUpTo moves the clock in steps, and waits after each until the worker has renewed its lease.
func renewUpTo(s *fixture.Fixture, second float64) {
	for s.Now < fixture.Epoch+int64(second*1000) {
		s.Now = min(s.Now+100_000, fixture.Epoch+int64(second*1000))
		s.At(float64(s.Now-fixture.Epoch) / 1000)
		s.Poll("the lease is renewed", func() bool {
			for _, info := range s.List() {
				if info.State == "reserved" && info.LeaseUntil.UnixMilli() < s.Now+300_000 {
					return false
				}
			}
			return true
		})
	}
}

// claimTogether makes many workers look for jobs at the same time.
func claimTogether(s *fixture.Fixture, workers, winners int) {
	type look struct {
		p     *fixture.Stepped
		found string
	}
	looks := make(chan look, workers)
	for range workers {
		p := s.Stepped()
		go func() { looks <- look{p, p.Claim()} }()
	}
	var won []*fixture.Stepped
	for range workers {
		if l := fixture.Receive(s, looks, "a worker's look"); l.found != "" {
			won = append(won, l.p)
		}
	}
	assert.Len(s, won, winners)
	for _, p := range won {
		p.End(nil)
	}
}
