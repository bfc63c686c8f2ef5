package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sqltest"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
)

var replaySQLCases = []sqlCase{
	{"letters that are too large for the database stay dead, and hold up no other", func(s *sqlFixture) {
		names := make([]string, 250)
		for _, i := range []int{3, 120, 121, 249} {
			names[i] = bad
		}
		s.Dead(names...)
		var stays []string
		for _, f := range s.DeadLetters() {
			if strings.Contains(f.Payload, bad) {
				stays = append(stays, f.ID)
			}
		}
		of := 0
		n, err := s.refusing(tooLarge{}).RetryAll(s.Context(), queue.Filter{Progress: func(done, _ int) { of = done }})
		assert.Equal(s, 246, n)
		assert.Equal(s, 250, of, "the progress counts those too")
		assert.Equal(s, stays, refused(s, err, tooLarge{}))
		s.stay(stays...)
		assert.EqualValues(s, 246, s.Counts("").Ready)
	}},
	{"a letter that is refused for any reason holds up no other", func(s *sqlFixture) {
		ids := s.Dead("a", bad, "b", bad, "c")
		n, err := s.refusing(errFault).RetryAll(s.Context(), queue.Filter{})
		assert.Equal(s, 3, n)
		assert.Equal(s, []string{ids[1], ids[3]}, refused(s, err, errFault))
		assert.Equal(s, []string{"a", "b", "c"}, s.Pending())
	}},
	{"an outage ends a replay", func(s *sqlFixture) {
		for _, rate := range []float64{0, 10} { // in chunks of many letters, and of one
			s.Clear(s)
			ids := s.Dead(make([]string, 20)...)
			var tries atomic.Int64
			q := s.broken(func(_ context.Context, statement string) error {
				if s.takesBack(statement) {
					tries.Add(1)
					return errFault
				}
				return nil
			})
			n, err := q.RetryAll(s.Context(), queue.Filter{Rate: rate})
			assert.Zero(s, n)
			require.ErrorIs(s, err, errFault)
			assert.LessOrEqual(s, tries.Load(), int64(3))
			s.stay(ids...)
		}
	}},
	{"letters that are too large for a server together go back, and one that is too large alone stays",
		func(s *sqlFixture) {
			if s.db.Dialect != sqlqueue.MySQL {
				s.Skip("this database takes more at once than a test should need")
			}
			ids := s.Dead("a", "b", "c", "d", "e")
			most := s.int("SELECT @@max_allowed_packet")
			for i, size := range map[int]int64{1: most * 6 / 10, 2: most - 100, 3: most * 6 / 10} {
				s.must("UPDATE "+s.table("failed_jobs")+" SET payload = REPEAT('x', ?) WHERE id = ?", size, ids[i])
			}
			n, err := s.Q.RetryAll(s.Context(), queue.Filter{})
			assert.Equal(s, 4, n)
			assert.ErrorContains(s, err, "max_allowed_packet")
			s.stay(ids[2])
		}},
}

// bad is the name of jobs that a database of refusing does not take back.
const bad = "not this one"

// refusing is a queue whose database refuses to take bad jobs back.
func (s *sqlFixture) refusing(reason error) *queue.Queue {
	return s.hooked(func(_ context.Context, c *sqltest.Call) error {
		if s.takesBack(c.Statement) && strings.Contains(fmt.Sprint(c.Args), bad) {
			return reason
		}
		return nil
	})
}

func (s *sqlFixture) takesBack(statement string) bool {
	return strings.HasPrefix(statement, "INSERT INTO "+s.table("jobs"))
}

// refused are the ids of the letters that an error says were refused.
func refused(s *sqlFixture, err error, reason error) (ids []string) {
	s.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(s, ok, "%v", err)
	for _, err := range joined.Unwrap() {
		var refused *queue.ReplayError
		require.ErrorAs(s, err, &refused)
		require.ErrorIs(s, refused.Err, reason)
		ids = append(ids, refused.ID)
	}
	return ids
}

// stay checks which letters are dead.
func (s *sqlFixture) stay(ids ...string) {
	s.Helper()
	var dead []string
	for _, f := range s.DeadLetters() {
		dead = append(dead, f.ID)
	}
	assert.Equal(s, ids, dead)
}
