package queuetest

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

//go:embed testdata
var testdata embed.FS

func vector[T any](s *stage, name string) (v T) {
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
	{"timeline", func(s *stage) {
		v := vector[struct{ Cases []timelineCase }](s, "db_queue_timeline")
		for _, c := range v.Cases {
			s.Run(c.Name, func(t *testing.T) {
				s := s.sub(t)
				if len(c.Steps) > 0 {
					playTimeline(s, c)
					return
				}
				told := timelineTold[c.Name]
				require.NotNil(s, told, "the suite has no test for this case")
				told(s)
			})
		}
	}},
	{"backoff", func(s *stage) {
		v := vector[struct {
			Cases []struct {
				Name        string
				Expect      []struct{ N, S int }
				ExpectRange []struct{ N, Min, Max int } `json:"expect_range"`
			}
		}](s, "db_queue_backoff")
		for _, c := range v.Cases {
			s.Run(c.Name, func(t *testing.T) {
				s := s.sub(t)
				base := map[string]float64{"tripling": 3, "doubling_with_jitter": 2}[c.Name]
				require.NotZero(s, base)
				sc := newScript(s, &script{tries: 9, handle: fails, backoff: func(n int) time.Duration {
					return time.Duration(10*math.Pow(base, float64(n-1))) * time.Second
				}})
				_, err := s.q.Push(s.Context(), sc.job("A"))
				require.NoError(s, err)
				w := s.worker(s.q, scriptedHandlers)
				next := func() int64 {
					require.Equal(s, 1, s.drain(w))
					due := s.list()[0].AvailableAt.UnixMilli() - s.now
					s.at(float64(s.now+due-epoch) / 1000)
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
	{"commands", func(s *stage) { playCommands(s) }},
	{"sync driver", func(s *stage) { playSync(s) }},
	{"worker rules", func(s *stage) { playWorkerRules(s) }},
}

func fails(context.Context, string) error { return errors.New("failed") }

// playTimeline lets puppets act out the steps of a case.
func playTimeline(s *stage, c timelineCase) {
	sc := newScript(s, &script{handle: held})
	if c.Job != nil {
		sc.tries = c.Job.Tries
		if c.Job.Backoff == "10*3^(n-1)" {
			sc.backoff = func(n int) time.Duration { return time.Duration(10*math.Pow(3, float64(n-1))) * time.Second }
		}
	}
	var opts []queue.WorkerOption
	if strings.Contains(c.Requires, "renews") {
		opts = append(opts, queue.RenewEvery(5*time.Millisecond))
	}
	puppets := map[string]*puppet{}
	for _, step := range c.Steps {
		if len(opts) > 0 {
			s.renewUpTo(step.T)
		}
		s.at(step.T)
		p := puppets[step.Worker]
		if p == nil {
			p = s.puppet(opts...)
			puppets[step.Worker] = p
		}
		switch step.Op {
		case "push":
			_, err := s.q.Push(s.Context(), sc.job(step.Job), queue.Delay(time.Duration(step.Delay*float64(time.Second))))
			require.NoError(s, err)
		case "claim":
			want, _ := step.Expect.(string)
			require.Equal(s, want, p.claim(), "claim of %s at %v s", step.Worker, step.T)
		case "claim_parallel":
			s.claimTogether(step.Workers, step.Winners)
		case "ok":
			p.end(nil)
			if step.Expect == "lease_lost" {
				assert.Equal(s, job.ReasonLeaseLost, p.event(job.EventUnsettled).Reason)
			}
		case "err":
			err := errors.New("boom")
			if step.Error != "" {
				class, text, _ := strings.Cut(step.Error, ": ")
				err = classed{class, text}
			}
			p.end(err)
		case "crash", "pause":
			if step.Op == "crash" {
				p.leave()
			}
		case "size":
			assert.EqualValues(s, step.Expect, s.counts("").Size(), "size at %v s", step.T)
		default:
			require.Fail(s, "unknown step "+step.Op)
		}
	}
	if c.ExpectRuns != nil {
		assert.Len(s, sc.ran(), *c.ExpectRuns)
	}
	if c.ExpectAvailableAt != nil {
		assert.Equal(s, epoch+*c.ExpectAvailableAt*1000, s.int("SELECT MAX(available_at) FROM "+s.table("jobs")))
	}
	if c.Expect != nil {
		checkEnd(s, sc, c.Expect)
	}
	for _, p := range puppets {
		p.leave()
	}
}

// A classed error has a class of its own.
type classed struct{ class, text string }

func (c classed) Error() string { return c.text }
func (c classed) Class() string { return c.class }

func checkEnd(s *stage, sc *script, raw json.RawMessage) {
	var end timelineEnd
	require.NoError(s, json.Unmarshal(raw, &end))
	letters := s.failed()
	if end.Runs != nil {
		assert.Len(s, sc.ran(), *end.Runs)
	}
	if end.BackoffCalls != nil {
		assert.Equal(s, end.BackoffCalls, append([]int{}, sc.backoffs...))
	}
	if end.FailedHook != nil {
		assert.Len(s, sc.failures(), *end.FailedHook)
	}
	if end.Size != nil {
		assert.Equal(s, *end.Size, s.counts("").Size())
	}
	if end.DeadCount != nil {
		assert.Len(s, letters, *end.DeadCount)
	}
	for i, want := range end.Dead {
		require.Greater(s, len(letters), i)
		assert.Equal(s, want.Exception, letters[i].Exception())
	}
}

// renewUpTo moves the clock in steps for each of which a worker renews its lease.
func (s *stage) renewUpTo(second float64) {
	for s.now < epoch+int64(second*1000) {
		s.now = min(s.now+100_000, epoch+int64(second*1000))
		s.at(float64(s.now-epoch) / 1000)
		s.poll("the lease is renewed", func() bool {
			return s.int("SELECT COUNT(*) FROM "+s.table("jobs")+" WHERE lease_until IS NOT NULL AND lease_until < "+s.place(1), s.now+300_000) == 0
		})
	}
}

// claimTogether lets many workers look at once.
func (s *stage) claimTogether(workers, winners int) {
	type look struct {
		p     *puppet
		found string
	}
	looks := make(chan look, workers)
	for range workers {
		p := s.puppet()
		go func() { looks <- look{p, p.claim()} }()
	}
	var won []*puppet
	for range workers {
		if l := receive(s, looks, "a worker's look"); l.found != "" {
			won = append(won, l.p)
		}
	}
	assert.Len(s, won, winners)
	for _, p := range won {
		p.end(nil)
	}
}
