package queuetest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var pushes = []behaviour{
	{"a pushed envelope comes back as it was", func(s *fixture.Fixture) {
		e := fixture.Envelope("plain", "naïve \\ \" ? $1 ☃")
		e.Meta = map[string]any{"traceparent": "00-abc", "big": json.Number("9007199254740993")}
		s.Push(e)
		got := make(chan job.Envelope, 1)
		s.Drain(s.Worker(s.Q, []job.Handler{job.Func("plain", func(ctx context.Context, e job.Envelope) job.Result {
			got <- e
			return job.Success()
		})}))
		assert.Equal(s, e, fixture.Receive(s, got, "the job"))
	}},
	{"a row holds what the options say", func(s *fixture.Fixture) {
		id := s.Push(fixture.Envelope("plain", "a"), queue.On("q"), queue.Priority(2), queue.Delay(1500*time.Microsecond),
			queue.Tries(7),
			queue.Backoff(3*time.Second), queue.Timeout(-1), queue.Unique("k", queue.TakenReject))
		info := s.Inspect(id).Job
		require.NotNil(s, info)
		assert.Equal(s, "q", info.Queue)
		assert.Equal(s, "delayed", info.State)
		assert.Equal(s, 2, info.Priority)
		assert.Equal(s, 7, info.MaxAttempts)
		assert.Equal(s, s.Now+2, info.AvailableAt.UnixMilli(), "parts of a millisecond are rounded up")
		assert.Equal(s, 3*time.Second, *info.Backoff)
		assert.Negative(s, *info.Timeout)
		assert.Equal(s, "plain:k", info.UniqueKey)
	}},
	{"two rows of one content are two jobs", func(s *fixture.Fixture) {
		s.Insert(`{"jobType":"nobody","payload":{}}`)
		s.Insert(`{"jobId":"","jobType":"nobody","payload":{}}`)
		s.Drain(s.Worker(s.Q, nil))
		letters := s.DeadLetters()
		require.Len(s, letters, 2)
		assert.Equal(s, "db_"+letters[0].Row, letters[0].JobID)
		assert.Equal(s, "db_"+letters[1].Row, letters[1].JobID)
	}},
	{"an envelope that had attempts keeps them", func(s *fixture.Fixture) {
		e := fixture.Envelope("plain", "a").WithAttempt(5)
		s.Push(e)
		w := s.Worker(s.Q, []job.Handler{job.Func("plain",
			func(ctx context.Context, e job.Envelope) job.Result { return job.Retry(nil) })})
		assert.Equal(s, 1, s.Drain(w))
		require.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, 5, s.DeadLetters()[0].Attempts)
	}},
	{"PushMany returns the ids in the order of the jobs_Row59", func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{})
		var js []queue.Job
		var names []string
		for i := range 1203 { // more than two statements' worth
			names = append(names, "n"+string(rune('a'+i%26)))
			js = append(js, sc.Job(names[i]))
		}
		ids, err := s.Q.PushMany(s.Context(), js)
		require.NoError(s, err)
		require.Len(s, ids, len(js))
		for i, info := range s.List() {
			require.Equal(s, ids[i], info.ID)
			var j fixture.Scripted
			require.NoError(s, info.Envelope.Bind(&j))
			require.Equal(s, names[i], j.Name)
		}
	}},
	{"PushMany stores what the options and each job say", func(s *fixture.Fixture) {
		names := []string{"naïve \\ \" ? $1 ☃", "{NULL, '\n\x1e\x00}", "<&>"}
		js := make([]queue.Job, len(names))
		for i, name := range names {
			js[i] = fixture.NewScript(s, &fixture.Script{Times: i + 3}).Job(name)
		}
		_, err := s.Q.PushMany(s.Context(), js, queue.On("q'"), queue.Priority(2), queue.Delay(1500*time.Microsecond),
			queue.Backoff(3*time.Second))
		require.NoError(s, err)
		_, err = s.Q.PushMany(s.Context(), js[:1], queue.Timeout(time.Nanosecond), queue.Tries(job.Unlimited))
		require.NoError(s, err)
		list := s.List()
		require.Len(s, list, 4)
		for i, info := range list[:3] {
			var j fixture.Scripted
			require.NoError(s, info.Envelope.Bind(&j))
			assert.Equal(s, js[i], j)
			assert.Equal(s, i+3, info.MaxAttempts)
			assert.Equal(s, "q'", info.Queue)
			assert.Equal(s, 2, info.Priority)
			assert.Zero(s, info.Attempts)
			assert.Equal(s, s.Now+2, info.AvailableAt.UnixMilli())
			assert.Equal(s, s.Now, info.CreatedAt.UnixMilli())
			assert.Equal(s, 3*time.Second, *info.Backoff)
			assert.Nil(s, info.Timeout)
		}
		assert.Equal(s, job.Unlimited, list[3].MaxAttempts)
		assert.Equal(s, time.Millisecond, *list[3].Timeout)
		assert.Nil(s, list[3].Backoff)
	}},
	{"PushMany looks at all its jobs before it stores one", func(s *fixture.Fixture) {
		sc := fixture.NewScript(s, &fixture.Script{})
		_, err := s.Q.PushMany(s.Context(), []queue.Job{sc.Job("A"), nil})
		require.Error(s, err)
		s.MustBeEmpty()
		_, err = s.Q.PushMany(s.Context(), []queue.Job{sc.Job("A")}, queue.Unique("k", queue.TakenReject))
		require.Error(s, err)
		ids, err := s.Q.PushMany(s.Context(), nil)
		require.NoError(s, err)
		assert.Empty(s, ids)
	}},
	{"a value against the rules is an error and stores nothing", func(s *fixture.Fixture) {
		for name, opt := range map[string]queue.PushOption{
			"priority": queue.Priority(4), "negative priority": queue.Priority(-1), "no queue": queue.On(""),
			"a long queue":       queue.On(strings.Repeat("q", 192)),
			"a queue of no text": queue.On("\xff"), "a queue with NUL": queue.On("a\x00"),
			"a key of no text": queue.Unique("\xff", queue.TakenReject), "no key": queue.Unique("", queue.TakenReject),
			"a long key": queue.Unique(strings.Repeat("k", 192), queue.TakenReject), "no rule": queue.Unique("k", 9),
		} {
			_, err := s.Q.PushEnvelope(s.Context(), fixture.Envelope("plain", "a"), opt)
			var config *queue.ConfigError
			assert.ErrorAs(s, err, &config, name)
		}
		var config *queue.ConfigError
		_, err := s.Q.PushEnvelope(s.Context(), fixture.Envelope("\xff", "a"))
		assert.ErrorAs(s, err, &config, "a type of no text")
		assert.ErrorAs(s, s.Q.Pause(s.Context(), "\xff"), &config)
		_, err = s.Q.PushEnvelope(s.Context(), job.Envelope{})
		var decode *job.DecodeError
		assert.ErrorAs(s, err, &decode)
		s.MustBeEmpty()
	}},
}
