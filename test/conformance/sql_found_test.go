package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fixture "github.com/taskd-go/task/internal/queuefixture"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
)

// foundSQLCases are about rows that another program wrote.
var foundSQLCases = []sqlCase{
	{"a row whose counters are the largest numbers is buried and holds up no claim_Found72", func(s *sqlFixture) {
		full := s.Push(fixture.Envelope("plain", "full"))
		s.must(fmt.Sprintf("UPDATE %s SET attempts = %d, seq = %d", s.table("jobs"), math.MaxInt32, math.MaxInt64))
		s.Push(fixture.Envelope("plain", "good"))
		r := fixture.NewRecord()
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}))
		assert.Equal(s, []string{"good"}, r.Take())
		require.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, []any{full, job.ReasonExhausted}, []any{s.DeadLetters()[0].Row, s.DeadLetters()[0].Reason})
		s.MustBeEmpty()
	}},
	{"an envelope with the largest attempt is pushed, and its row ends_Found72", func(s *sqlFixture) {
		for _, attempt := range []int{math.MaxInt32, math.MaxInt32 + 5} {
			s.Push(fixture.Envelope("plain", "a").WithAttempt(attempt))
		}
		s.Push(fixture.Envelope("plain", "free").WithAttempt(math.MaxInt32), queue.Tries(job.Unlimited))
		r := fixture.NewRecord()
		s.Drain(s.Worker(s.Q, []job.Handler{r.Handler()}))
		assert.Equal(s, []string{"free"}, r.Take())
		assert.Len(s, s.DeadLetters(), 2)
		s.MustBeEmpty()
	}},
	{"a lapsed row whose counters are the largest numbers is buried_Found72", func(s *sqlFixture) {
		s.lapsedRows(1, "plain")
		s.must(fmt.Sprintf("UPDATE %s SET attempts = %d, crashes = %d", s.table("jobs"), math.MaxInt32, math.MaxInt32))
		s.Drain(s.Worker(s.Q, nil, queue.Queues("elsewhere")))
		assert.Len(s, s.DeadLetters(), 1)
		s.MustBeEmpty()
	}},
	{"a job that was replayed too often to count is buried_Found73", func(s *sqlFixture) {
		e := fixture.Envelope("nobody", "a")
		e.Meta = map[string]any{"replays": json.Number("3000000000")}
		s.Push(e)
		s.Drain(s.Worker(s.Q, nil))
		require.Len(s, s.DeadLetters(), 1)
		assert.Equal(s, math.MaxInt32, s.DeadLetters()[0].Replays)
		s.MustBeEmpty()
	}},
	{"lapsed rows that cannot be ended hold up no other_Found73", func(s *sqlFixture) {
		const bad = 120 // more than one call of Lapsed returns
		s.lapsedRows(bad, "bad")
		s.must(fmt.Sprintf("UPDATE %s SET crashes = 2, lease_until = 1", s.table("jobs")))
		s.must(fmt.Sprintf("INSERT INTO %s (queue, payload, attempts, available_at, reserved_token, reserved_at, lease_until)"+
			` VALUES ('q0', '{"jobType":"good","payload":{}}', 1, 1, 'gone.2', 1, %d)`, s.table("jobs"), s.Now-1))
		q := s.brokenArgs(func(statement string, args string) error {
			if strings.HasPrefix(statement, "INSERT INTO "+s.table("failed_jobs")) && strings.Contains(args, "bad") {
				return errFault
			}
			return nil
		})
		w := s.Worker(q, nil, queue.Queues("elsewhere"), queue.QueryTimeout(time.Minute))
		for range 3 {
			w.WorkUntilEmpty(s.Context(), 0)
		}
		assert.EqualValues(s, 1, s.Counts("").Ready, "the good one is due again")
		assert.EqualValues(s, bad, s.Counts("").Reserved)
	}},
}

// Another program writes what is no whole number into the columns of an SQLite file, which takes it.
func TestAnSQLiteValueThatIsNoNumberHarmsItsRowOnly_Found71(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ column, value string }{
		{"available_at", "1.5"}, {"attempts", "0.5"}, {"attempts", "9223372036854775807"}, {"max_attempts", "'x'"},
		{"max_attempts", "2.5"}, {"crashes", "'x'"}, {"crashes", "0.5"}, {"backoff_ms", "'1s'"}, {"timeout_ms", "1e300"},
		{"created_at", "'2026-01-01'"}, {"created_at", "x'00ff'"}, {"created_at", "-1e300"},
	} {
		t.Run(c.column+" "+c.value, func(t *testing.T) {
			t.Parallel()
			db := openSQLite(t)
			q := openQueue(t, db)
			insert := func(lapsed bool) {
				run(t, db, `INSERT INTO jobs (payload) VALUES ('{"jobType":"bad","payload":{}}'), ('{"jobType":"good","payload":{}}')`)
				if lapsed {
					run(t, db, "UPDATE jobs SET reserved_token = 'gone.1', reserved_at = 1, "+
						"lease_until = CASE WHEN payload LIKE '%bad%' THEN 2.5 ELSE 2 END, attempts = 1")
				}
				run(t, db, fmt.Sprintf("UPDATE jobs SET %s = %s WHERE payload LIKE '%%bad%%'", c.column, c.value))
			}
			for round, lapsed := range []bool{false, true} {
				insert(lapsed)
				for _, err := range q.List(t.Context(), "") {
					require.NoError(t, err)
				}
				ran := workOffTypes(t, q)
				assert.Contains(t, ran, "good", "lapsed %t", lapsed)
				assert.NotContains(t, ran, "bad", "lapsed %t", lapsed)
				letters := 0
				for f, err := range q.Failed(t.Context(), queue.Filter{}) {
					require.NoError(t, err)
					letters++
					assert.NotEmpty(t, f.Error)
				}
				assert.Equal(t, round+1, letters)
				n, err := q.Size(t.Context(), "")
				require.NoError(t, err)
				assert.Zero(t, n)
			}
		})
	}
}

func TestCountsEndsWithAQueueNameThatIsABlob_Found71(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	run(t, db, `INSERT INTO jobs (queue, payload) VALUES (x'61', '{}'), (x'62', '{}'), ('b', '{}')`)
	_, err := openQueue(t, db).Counts(t.Context(), "")
	require.NoError(t, err)
}

// The settings of the session stand for those of the server.
func TestMySQLSettingsOfTheServerDoNotChangeTheQueue_Found74(t *testing.T) {
	t.Parallel()
	db := openMySQL(t)
	sep := "?"
	if strings.Contains(mysqlDSN(), "?") {
		sep = "&"
	}
	other, err := mysql.Open(t.Context(), mysqlDSN()+sep+
		"autocommit=0&completion_type=2&sql_select_limit=1&sql_mode=%27%27")
	require.NoError(t, err)
	defer other.Close()
	q := queueOver(t, other, db)
	for range 3 {
		_, err = q.PushEnvelope(t.Context(), fixture.Envelope("good", "a"))
		require.NoError(t, err)
	}
	n, err := openQueue(t, db).Size(t.Context(), "")
	require.NoError(t, err)
	assert.EqualValues(t, 3, n, "another connection sees them")
	listed := 0
	for _, err := range q.List(t.Context(), "") {
		require.NoError(t, err)
		listed++
	}
	assert.Equal(t, 3, listed)
	_, err = other.ExecContext(t.Context(), "INSERT INTO "+db.Tables.Prefix+"jobs (queue, payload) VALUES (?, '{}')",
		strings.Repeat("q", 192))
	assert.Error(t, err, "a value that is too long is refused, not cut")
	assert.Len(t, workOffTypes(t, q), 3)
}

func TestATablePrefixInCapitalsWorks_Found78(t *testing.T) {
	t.Parallel()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db := d.open(t)
			db.Tables.Prefix = "App_" + db.Tables.Prefix + "X_"
			migrated(t, db)
			pending, err := migrate.Pending(t.Context(), db.SQL, db.Dialect, db.Tables)
			require.NoError(t, err)
			assert.False(t, pending)
			applied, err := migrate.Up(t.Context(), db.SQL, db.Dialect, db.Tables)
			require.NoError(t, err)
			assert.Zero(t, applied)
			q := openQueue(t, db)
			_, err = q.PushEnvelope(t.Context(), fixture.Envelope("good", "a"))
			require.NoError(t, err)
			assert.Len(t, workOffTypes(t, q), 1)
		})
	}
}

func TestManyLargeJobsAreSeveralStatements_Found79(t *testing.T) {
	t.Parallel()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			q := openQueue(t, d.open(t))
			js := make([]queue.Job, 500)
			for i := range js {
				js[i] = large{Text: strings.Repeat("x", 40<<10)}
			}
			ids, err := q.PushMany(t.Context(), js)
			require.NoError(t, err)
			assert.Len(t, ids, len(js))
			n, err := q.Size(t.Context(), "")
			require.NoError(t, err)
			assert.EqualValues(t, len(js), n)
		})
	}
}

type large struct{ Text string }

func (large) JobType() string              { return "large" }
func (large) Handle(context.Context) error { return nil }

// workOffTypes works a queue off and returns the types of the jobs that ran.
func workOffTypes(t *testing.T, q *queue.Queue) (ran []string) {
	t.Helper()
	var handlers []job.Handler
	for _, name := range []string{"good", "bad"} {
		handlers = append(handlers, job.Func(name, func(_ context.Context, e job.Envelope) job.Result {
			ran = append(ran, e.JobType)
			return job.Success()
		}))
	}
	reg, err := job.NewRegistry(handlers...)
	require.NoError(t, err)
	_, err = queue.NewWorker(q, reg, queue.Concurrency(1)).WorkUntilEmpty(t.Context(), 0)
	require.NoError(t, err)
	return ran
}
