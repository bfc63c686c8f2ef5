package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

var workSQLCases = []sqlCase{
	{"a job whose attempts are used up goes dead unrun", func(s *sqlFixture) {
		s.Push(fixture.Envelope("plain", "a"), queue.Tries(2))
		s.must("UPDATE " + s.table("jobs") + " SET attempts = 2")
		r := fixture.NewRecord()
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}))
		assert.Empty(s, r.Take())
		assert.Equal(s, job.ReasonExhausted, s.DeadLetters()[0].Reason)
	}},
	{"what comes in before the jobs that are being taken is taken too", func(s *sqlFixture) {
		for _, name := range []string{"a", "b", "c"} {
			s.Push(fixture.Envelope("plain", name))
		}
		var ran []string
		w := s.Worker(s.Q, fixture.Answers(func(ctx context.Context, e job.Envelope) job.Result {
			var arg struct{ Name string }
			assert.NoError(s, e.Bind(&arg))
			if ran = append(ran, arg.Name); arg.Name == "b" { // as one that was pushed long ago in a transaction
				s.Insert(`{"jobType":"plain","payload":{"name":"late"}}`)
				s.must(fmt.Sprintf("UPDATE %s SET available_at = %d WHERE reserved_token IS NULL AND payload LIKE '%%late%%'",
					s.table("jobs"), s.Now-1000))
			}
			return job.Success()
		}), queue.Concurrency(1))
		assert.Equal(s, 4, s.Drain(w))
		assert.ElementsMatch(s, []string{"a", "b", "c", "late"}, ran)
	}},
	{"dead_record_is_atomic", func(s *sqlFixture) {
		s.Push(fixture.Envelope("nobody", "A"))
		s.must("ALTER TABLE " + s.table("failed_jobs") + " RENAME TO " + s.table("failed_away"))
		w := s.Worker(s.Q, nil, queue.Lease(200*time.Millisecond))
		_, err := w.ProcessOne(s.Context())
		s.must("ALTER TABLE " + s.table("failed_away") + " RENAME TO " + s.table("failed_jobs"))
		require.NoError(s, err)
		assert.EqualValues(s, 1, s.Counts("").Size())
		assert.Empty(s, s.DeadLetters())
		s.Advance(time.Hour)
		s.Drain(w)
		s.MustBeEmpty()
		assert.Len(s, s.DeadLetters(), 1)
	}},
}
