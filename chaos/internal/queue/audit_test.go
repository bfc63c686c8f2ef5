package queue

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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
	cut, whole := []effect{beginning(0, 1)}, []effect{beginning(0, 1), ending(10, 1)}
	again := []effect{beginning(20, 2, crashed), ending(30, 2)}
	muchLater := later(again, 5000)
	afterFailure := []effect{beginning(20, 2, failed), ending(30, 2)}
	forgetful := []effect{beginning(20, 2), ending(30, 2)}
	uncounted := []effect{beginning(20, 1), ending(30, 1)}
	uncounted[0].PID, uncounted[1].PID = 9, 9
	beside := []effect{beginning(20, 2, crashed), ending(30, 2)}
	beside[0].Alone = false
	failing := []effect{beginning(0, 1), ending(10, 1)}
	failing[1].Failed = true
	unsettled := []effect{{At: ms(15), What: effectUnsettled, Attempt: 1}}
	killed := workerKill("w1", 15)
	runs := func(all ...[]effect) []effect { return slices.Concat(all...) }

	for name, c := range map[string]struct {
		effects []effect
		kills   []kill
		gone    int64
		problem string // part of it; empty: none
		cause   string
	}{
		"once":                         {whole, nil, 0, "", ""},
		"never":                        {nil, nil, 0, "is lost", ""},
		"not to its end":               {cut, nil, 0, "is lost", ""},
		"again for no reason":          {runs(whole, again), nil, 0, "nothing allows it", ""},
		"again, its worker killed":     {runs(whole, again), killed, 0, "", causeUnstored},
		"again, cut off":               {runs(cut, again), killed, 0, "", causeKilled},
		"again, another worker killed": {runs(cut, again), workerKill("w2", 15), 0, "nothing allows it", ""},
		"again, its child killed":      {runs(cut, again), childKill(15, 0), 0, "", causeKilled},
		"again, a child killed before": {runs(later(cut, 5), again), childKill(1, 2), 0, "nothing allows it", ""},
		"again, long after its end":    {runs(whole, muchLater), workerKill("w1", 5000), 0, "nothing allows it", ""},
		"again, the database killed":   {runs(whole, again), serverKill(5, 12), 0, "", causeUnstored},
		"again, the database back":     {later(runs(whole, again), 10), serverKill(1, 5), 0, "nothing allows it", ""},
		"again, the lease lost":        {runs(cut, unsettled, again), nil, 0, "", causeLease},
		"again after it was gone":      {runs(whole, again), killed, ms(12), "its row was gone", causeUnstored},
		"side by side":                 {runs(cut, beside), killed, 0, "while another one ran", causeKilled},
		"as ordered":                   {runs(failing, afterFailure), nil, 0, "", ""},
		"the attempt not counted":      {runs(cut, uncounted), killed, 0, "attempt 1 after attempt 1", causeKilled},
		"the crash not remembered":     {runs(cut, forgetful), killed, 0, "a memory of []", causeKilled},
		"a failure that was none":      {runs(whole, afterFailure), nil, 0, "did not fail", ""},
		"a crash that was none":        {again, nil, 0, "nothing was killed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			newAuditCase(t).check(t, &row{mayAgain: true}, c.effects, c.kills, c.gone, c.problem, c.cause)
		})
	}
}

// A kill must have the effect that its step allows, and no other. The audit cannot tell when a lease was lost besides.
func TestTheAuditKnowsWhatAKillMayCause(t *testing.T) {
	whole := []effect{beginning(0, 1), ending(10, 1)}
	again := []effect{beginning(20, 2, pastAttempt{1, job.ReasonCrashed}), ending(30, 2)}
	unsettled := []effect{{At: ms(15), What: effectUnsettled, Attempt: 9}}
	for name, c := range map[string]struct {
		step    string
		target  string
		effects []effect
		problem string // part of it; empty: none
	}{
		"once":                      {"requeued", targetChild, whole, ""},
		"a crash that was none":     {"requeued", targetChild, again, "0 jobs ran again and 1 crashes count"},
		"a crash and a lost lease":  {"requeued", targetChild, slices.Concat(unsettled, again), ""},
		"a claim that was lost":     {"claimed", targetWorker, again, ""},
		"a claim that was not lost": {"claimed", targetWorker, whole, "0 jobs ran again and 0 crashes count"},
		"a run that did not repeat": {"running", targetWorker, whole, "and it should be 1 and 1"},
		"the server killed":         {"running", targetServer, whole, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &row{Step: c.step, Target: c.target, Kills: 1}
			newAuditCase(t).check(t, r, c.effects, workerKill("w1", 15), 0, c.problem, "")
		})
	}
}

func workerKill(name string, at int64) []kill {
	return []kill{{target: targetWorker, worker: name, at: ms(at)}}
}

func childKill(at, by int64) []kill {
	return []kill{{target: targetChild, worker: "w1", pid: 1, at: ms(at), by: ms(by)}}
}

func serverKill(at, by int64) []kill { return []kill{{target: targetServer, at: ms(at), by: ms(by)}} }

// later returns effects so many milliseconds later.
func later(effects []effect, by int64) []effect {
	moved := slices.Clone(effects)
	for i := range moved {
		moved[i].At += ms(by)
	}
	return moved
}

// check audits effects and kills into a row, and expects a problem and a cause, or none.
func (a *auditCase) check(t *testing.T, r *row, effects []effect, kills []kill, gone int64, problem, cause string) {
	t.Helper()
	a.write(t, effects...)
	a.kills, a.jobs[auditedJob].gone = kills, gone
	require.NoError(t, a.audit(t.Context(), r))
	if problem == "" {
		assert.Empty(t, r.Problems)
	} else {
		assert.Contains(t, strings.Join(r.Problems, "\n"), problem)
	}
	if cause != "" {
		assert.Equal(t, map[string]int{cause: 1}, r.Because)
	}
}

func TestTheAccountsOfLiveRowsAreChecked(t *testing.T) {
	crash := job.AttemptError{Attempt: 1, Reason: job.ReasonCrashed}
	one := []job.AttemptError{crash}
	for name, c := range map[string]struct {
		row   queue.JobInfo
		right bool
	}{
		"new":                          {queue.JobInfo{State: "ready"}, true},
		"running":                      {queue.JobInfo{State: "reserved", Attempts: 1}, true},
		"crashed":                      {queue.JobInfo{State: "ready", Attempts: 1, Crashes: 1, Failures: one}, true},
		"running without an attempt":   {queue.JobInfo{State: "reserved"}, false},
		"an attempt that it forgot":    {queue.JobInfo{State: "ready", Attempts: 1}, false},
		"a crash that was not counted": {queue.JobInfo{State: "ready", Attempts: 1, Failures: one}, false},
		"a crash that it forgot":       {queue.JobInfo{State: "ready", Crashes: 1}, false},
		"a run that does not count": {
			queue.JobInfo{State: "reserved", Attempts: 1, Crashes: 1, Failures: one}, false,
		},
	} {
		assert.Equal(t, c.right, rowProblem(c.row) == "", name)
	}
}
