package queuetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var orders = []behaviour{
	{"priority, then due time, then id", func(s *stage) {
		s.push(envelope("plain", "normal later"), queue.Delay(2*time.Second))
		s.push(envelope("plain", "normal 1"))
		s.push(envelope("plain", "low"), queue.Priority(0))
		s.push(envelope("plain", "urgent"), queue.Priority(3))
		s.push(envelope("plain", "normal 2"))
		s.push(envelope("plain", "high"), queue.Priority(2))
		s.push(envelope("plain", "urgent, but not due"), queue.Priority(3), queue.Delay(time.Hour))
		s.at(3)
		r := newRecord()
		s.drain(s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(1)))
		assert.Equal(s, []string{"urgent", "high", "normal 1", "normal 2", "normal later", "low"}, r.take())
	}},
	{"a worker takes from its queues only, the first one first", func(s *stage) {
		for _, q := range []string{"low", "default", "critical", "other"} {
			s.push(envelope("plain", q+" 1"), queue.On(q))
			s.push(envelope("plain", q+" 2"), queue.On(q))
		}
		r := newRecord()
		s.drain(s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(1), queue.Queues("critical, default,low")))
		assert.Equal(s, []string{"critical 1", "critical 2", "default 1", "default 2", "low 1", "low 2"}, r.take())
		assert.EqualValues(s, 2, s.counts("other").Ready)
	}},
	{"a batch that is taken at once keeps the order", func(s *stage) {
		var want []string
		for i := range 20 {
			name := string(rune('a' + i))
			want = append(want, name)
			s.push(envelope("plain", name))
		}
		r := newRecord()
		n, err := s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(7)).WorkUntilEmpty(s.Context(), 5)
		require.NoError(s, err)
		assert.Equal(s, 5, n)
		assert.ElementsMatch(s, want[:5], r.take())
		assert.EqualValues(s, 15, s.counts("").Ready, "no more are taken than may be")
	}},
	{"weights share, and starve none", func(s *stage) {
		for range 200 {
			s.push(envelope("plain", "a"), queue.On("a"))
			s.push(envelope("plain", "b"), queue.On("b"))
		}
		r := newRecord()
		_, err := s.worker(s.q, []job.Handler{r.handler()}, queue.Concurrency(1), queue.Queues("a:3,b:1")).WorkUntilEmpty(s.Context(), 120)
		require.NoError(s, err)
		b := 0
		for _, name := range r.take() {
			if name == "b" {
				b++
			}
		}
		assert.Greater(s, b, 10, "a quarter of 120 is 30")
		assert.Less(s, b, 60)
	}},
	{"wrong queues are an error of the worker", func(s *stage) {
		for _, spec := range []string{"", "a,,b", "a:0", "a:x", "a,a", "a:-1"} {
			_, err := s.worker(s.q, nil, queue.Queues(spec)).ProcessOne(s.Context())
			var config *queue.ConfigError
			assert.ErrorAs(s, err, &config, spec)
		}
	}},
}
