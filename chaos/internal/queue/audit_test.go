package queue

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// An auditCase is a workload of one job, for the audit alone.
type auditCase struct {
	*workload
	files int
}

const auditedJob = "job_1"

func newAuditCase(t *testing.T) *auditCase {
	t.Helper()
	dir := t.TempDir()
	db, err := source{dsn: "sqlite:" + filepath.Join(dir, "queue.db")}.open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return &auditCase{workload: &workload{
		dir: dir, db: db, lease: time.Second, jobs: map[string]*jobRecord{auditedJob: {tries: 5, stored: true}},
	}}
}

// ms returns a time of the workload.
func ms(n int64) int64 { return n * int64(time.Millisecond) }

// write writes effects to a new file.
func (c *auditCase) write(t *testing.T, all ...effect) {
	t.Helper()
	var b strings.Builder
	for _, e := range all {
		e.Job, e.Owner = auditedJob, "w1"
		line, err := json.Marshal(e)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	c.files++
	path := filepath.Join(c.dir, strconv.Itoa(c.files)+effectsSuffix)
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
}

func beginning(at int64, attempt int, history ...pastAttempt) effect {
	return effect{At: ms(at), What: effectBegan, Attempt: attempt, PID: attempt, Alone: true, History: history}
}

func ending(at int64, attempt int) effect {
	return effect{At: ms(at), What: effectEnded, Attempt: attempt, PID: attempt}
}

func TestTheAuditFindsWhatIsWrong(t *testing.T) {
	crashed, failed := pastAttempt{1, job.ReasonCrashed}, pastAttempt{1, job.ReasonFailed}
	killed := kill{target: targetWorker, worker: "w1", at: ms(15)}
	beside := beginning(20, 2, crashed)
	beside.Alone = false
	other, otherEnd := beginning(20, 1), ending(30, 1)
	other.PID, otherEnd.PID = 9, 9
	failing := ending(10, 1)
	failing.Failed = true
	for name, c := range map[string]struct {
		effects []effect
		kills   []kill
		gone    int64
		problem string // part of it; empty: none
		cause   string
	}{
		"once":                            {effects: []effect{beginning(0, 1), ending(10, 1)}},
		"never":                           {problem: "is lost"},
		"not to its end":                  {effects: []effect{beginning(0, 1)}, problem: "is lost"},
		"again for no reason":             {effects: []effect{beginning(0, 1), ending(10, 1), beginning(20, 2, crashed), ending(30, 2)}, problem: "nothing allows it"},
		"again, its worker killed":        {effects: []effect{beginning(0, 1), ending(10, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{killed}, cause: causeUnstored},
		"again, cut off":                  {effects: []effect{beginning(0, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{killed}, cause: causeKilled},
		"again, another worker killed":    {effects: []effect{beginning(0, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{{target: targetWorker, worker: "w2", at: ms(15)}}, problem: "nothing allows it"},
		"again, its child killed":         {effects: []effect{beginning(0, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{{target: targetChild, worker: "w1", pid: 1, at: ms(15)}}, cause: causeKilled},
		"again, a child killed before":    {effects: []effect{beginning(5, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{{target: targetChild, worker: "w1", pid: 1, at: ms(1), by: ms(2)}}, problem: "nothing allows it"},
		"again, long after its end":       {effects: []effect{beginning(0, 1), ending(10, 1), beginning(5020, 2, crashed), ending(5030, 2)}, kills: []kill{{target: targetWorker, worker: "w1", at: ms(5000)}}, problem: "nothing allows it"},
		"again, the database killed":      {effects: []effect{beginning(0, 1), ending(10, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{{target: targetServer, at: ms(5), by: ms(12)}}, cause: causeUnstored},
		"again, the database back before": {effects: []effect{beginning(10, 1), ending(12, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{{target: targetServer, at: ms(1), by: ms(5)}}, problem: "nothing allows it"},
		"again, the lease lost":           {effects: []effect{beginning(0, 1), {At: ms(15), What: effectUnsettled, Attempt: 1}, beginning(20, 2, crashed), ending(30, 2)}, cause: causeLease},
		"again after it was gone":         {effects: []effect{beginning(0, 1), ending(10, 1), beginning(20, 2, crashed), ending(30, 2)}, kills: []kill{killed}, gone: ms(12), problem: "after its row was gone", cause: causeUnstored},
		"side by side":                    {effects: []effect{beginning(0, 1), beside, ending(30, 2)}, kills: []kill{killed}, problem: "while another one ran", cause: causeKilled},
		"as ordered":                      {effects: []effect{beginning(0, 1), failing, beginning(20, 2, failed), ending(30, 2)}},
		"the attempt not counted":         {effects: []effect{beginning(0, 1), other, otherEnd}, kills: []kill{killed}, problem: "attempt 1 after attempt 1", cause: causeKilled},
		"the crash not remembered":        {effects: []effect{beginning(0, 1), beginning(20, 2), ending(30, 2)}, kills: []kill{killed}, problem: "a memory of []", cause: causeKilled},
		"a failure that was none":         {effects: []effect{beginning(0, 1), ending(10, 1), beginning(20, 2, failed), ending(30, 2)}, problem: "did not fail"},
		"a crash that was none":           {effects: []effect{beginning(20, 2, crashed), ending(30, 2)}, problem: "nothing was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			a, row := newAuditCase(t), &row{mayAgain: true}
			a.write(t, c.effects...)
			a.kills, a.jobs[auditedJob].gone = c.kills, c.gone
			require.NoError(t, a.audit(t.Context(), row))
			if c.problem == "" {
				assert.Empty(t, row.Problems)
			} else {
				assert.Contains(t, strings.Join(row.Problems, "\n"), c.problem)
			}
			if c.cause != "" {
				assert.Equal(t, map[string]int{c.cause: 1}, row.Because)
			}
		})
	}
}

func TestTheAccountsOfLiveRowsAreChecked(t *testing.T) {
	crash := job.AttemptError{Attempt: 1, Reason: job.ReasonCrashed}
	for name, c := range map[string]struct {
		row   queue.JobInfo
		right bool
	}{
		"new":                            {queue.JobInfo{State: "ready"}, true},
		"running":                        {queue.JobInfo{State: "reserved", Attempts: 1}, true},
		"crashed":                        {queue.JobInfo{State: "ready", Attempts: 1, Crashes: 1, Failures: []job.AttemptError{crash}}, true},
		"running without an attempt":     {queue.JobInfo{State: "reserved"}, false},
		"an attempt that it forgot":      {queue.JobInfo{State: "ready", Attempts: 1}, false},
		"a crash that was not counted":   {queue.JobInfo{State: "ready", Attempts: 1, Failures: []job.AttemptError{crash}}, false},
		"a crash that it does not know":  {queue.JobInfo{State: "ready", Crashes: 1}, false},
		"an attempt that was given away": {queue.JobInfo{State: "reserved", Attempts: 1, Crashes: 1, Failures: []job.AttemptError{crash}}, false},
	} {
		assert.Equal(t, c.right, rowProblem(c.row) == "", "%s: %s", name, rowProblem(c.row))
	}
}
