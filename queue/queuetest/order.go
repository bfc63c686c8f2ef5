package queuetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var orders = []behaviour{
	{"priority, then due time, then id", func(s *fixture.Fixture) {
		s.Push(fixture.Envelope("plain", "normal later"), queue.Delay(2*time.Second))
		s.Push(fixture.Envelope("plain", "normal 1"))
		s.Push(fixture.Envelope("plain", "low"), queue.Priority(0))
		s.Push(fixture.Envelope("plain", "urgent"), queue.Priority(3))
		s.Push(fixture.Envelope("plain", "normal 2"))
		s.Push(fixture.Envelope("plain", "high"), queue.Priority(2))
		s.Push(fixture.Envelope("plain", "urgent, but not due"), queue.Priority(3), queue.Delay(time.Hour))
		s.At(3)
		r := fixture.NewRecord()
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}, queue.Concurrency(1)))
		assert.Equal(s, []string{"urgent", "high", "normal 1", "normal 2", "normal later", "low"}, r.Take())
	}},
	{"a worker takes from its queues only, the first one first", func(s *fixture.Fixture) {
		for _, q := range []string{"low", "default", "critical", "other"} {
			s.Push(fixture.Envelope("plain", q+" 1"), queue.On(q))
			s.Push(fixture.Envelope("plain", q+" 2"), queue.On(q))
		}
		r := fixture.NewRecord()
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}, queue.Concurrency(1), queue.Queues("critical, default,low")))
		assert.Equal(s, []string{"critical 1", "critical 2", "default 1", "default 2", "low 1", "low 2"}, r.Take())
		assert.EqualValues(s, 2, s.Counts("other").Ready)
	}},
	{"a batch that is taken at once keeps the order", func(s *fixture.Fixture) {
		var want []string
		for i := range 20 {
			name := string(rune('a' + i))
			want = append(want, name)
			s.Push(fixture.Envelope("plain", name))
		}
		r := fixture.NewRecord()
		n, err := s.Worker(s.Q, []job.Handler{r.Handler()}, queue.Concurrency(7)).WorkUntilEmpty(s.Context(), 5)
		require.NoError(s, err)
		assert.Equal(s, 5, n)
		assert.ElementsMatch(s, want[:5], r.Take())
		assert.EqualValues(s, 15, s.Counts("").Ready, "no more are taken than may be")
	}},
	{"weights share, and starve none", func(s *fixture.Fixture) {
		for range 200 {
			s.Push(fixture.Envelope("plain", "a"), queue.On("a"))
			s.Push(fixture.Envelope("plain", "b"), queue.On("b"))
		}
		r := fixture.NewRecord()
		_, err := s.Worker(s.Q, []job.Handler{r.Handler()}, queue.Concurrency(1),
			queue.Queues("a:3,b:1")).WorkUntilEmpty(s.Context(), 120)
		require.NoError(s, err)
		b := 0
		for _, name := range r.Take() {
			if name == "b" {
				b++
			}
		}
		assert.Greater(s, b, 10, "a quarter of 120 is 30")
		assert.Less(s, b, 60)
	}},
	{"wrong queues are an error of the worker", func(s *fixture.Fixture) {
		for _, spec := range []string{"", "a,,b", "a:0", "a:x", "a,a", "a:-1"} {
			_, err := s.Worker(s.Q, nil, queue.Queues(spec)).ProcessOne(s.Context())
			var config *queue.ConfigError
			assert.ErrorAs(s, err, &config, spec)
		}
	}},
}
