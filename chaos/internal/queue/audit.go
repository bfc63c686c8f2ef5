package queue

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// The only causes for which a job may run again, or an attempt be used up.
const (
	causeKilled   = "killed while it ran"
	causeUnstored = "killed before its end was stored"
	causeLease    = "lease lost before its end was stored"
)

// An audit compares the effects of a workload with the orders, the kills and the database.
type audit struct {
	*workload
	runs      map[string][]jobRun
	unsettled map[string]bool // by job and attempt
	letters   map[string]queue.FailedJob
	row       *row
}

// A jobRun is one run of a job.
type jobRun struct {
	effect
	ended  int64 // unix nanoseconds; 0: it did not end
	failed bool
}

func key(jobID string, attempt int) string { return fmt.Sprintf("%s/%d", jobID, attempt) }

// audit fills the row.
func (w *workload) audit(ctx context.Context, r *row) error {
	a := &audit{
		workload: w, row: r,
		runs: map[string][]jobRun{}, unsettled: map[string]bool{}, letters: map[string]queue.FailedJob{},
	}
	all, err := readEffects(w.dir)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(x, y effect) int { return cmp.Compare(x.At, y.At) })
	a.sort(all)
	for letter, err := range w.db.queue.Failed(ctx, queue.Filter{}) {
		if err != nil {
			return err
		}
		if _, twice := a.letters[letter.JobID]; twice {
			r.problem("job %s: two dead letters", letter.JobID)
		}
		a.letters[letter.JobID] = letter
		r.Dead++
	}
	r.Because = map[string]int{}
	for id, record := range w.jobs {
		a.job(id, record)
	}
	r.LeasesLost = len(a.unsettled)
	a.checkStep()
	r.add(w.problems)
	if len(r.Problems) > 0 {
		r.Timeline = w.timeline(all)
	}
	return nil
}

// checkStep compares how many jobs ran again and how many crashes were counted with what the death
// of the target at the step may cause. It cannot tell when the server was killed, when kills were
// at random, or when a worker reports that it lost a lease, which happens on a busy machine.
func (a *audit) checkStep() {
	step, ok := stepNamed(a.row.Step)
	if !ok || a.row.Target == targetServer || a.row.Kills == 0 || len(a.unsettled) > 0 {
		return
	}
	again, crashes := step.expects(a.row.Target)
	if a.row.Again != again || a.row.Crashes != crashes {
		a.row.problem("%d jobs ran again and %d crashes count, and it should be %d and %d",
			a.row.Again, a.row.Crashes, again, crashes)
	}
}

// sort groups the effects, in order of time, by runs.
func (a *audit) sort(all []effect) {
	for _, e := range all {
		runs := a.runs[e.Job]
		switch e.What {
		case effectBegan:
			a.runs[e.Job] = append(runs, jobRun{effect: e})
			if !e.Alone {
				a.problem("job %s: attempt %d began while another one ran", e.Job, e.Attempt)
			}
		case effectEnded:
			i := slices.IndexFunc(runs, func(r jobRun) bool { return r.PID == e.PID && r.Attempt == e.Attempt })
			if i < 0 {
				a.problem("job %s: attempt %d ended and had not begun", e.Job, e.Attempt)
				continue
			}
			runs[i].ended, runs[i].failed = e.At, e.Failed
		case effectUnsettled:
			a.unsettled[key(e.Job, e.Attempt)] = true
		}
	}
}

// job audits one job.
func (a *audit) job(id string, record *jobRecord) {
	if record.stored {
		a.row.Jobs++
	} else {
		a.row.Unanswered++
	}
	runs := a.runs[id]
	letter, dead := a.letters[id]
	done := slices.ContainsFunc(runs, func(r jobRun) bool { return r.ended > 0 && !r.failed })
	if record.stored && !done && !dead {
		a.row.Lost++
		a.row.problem("job %s is lost: it did not run to its end and is no dead letter", id)
	}
	if done && dead {
		a.doneAndDead(id, runs, letter)
	}
	again := false
	for i := range runs[:max(len(runs)-1, 0)] {
		again = a.followed(id, record, runs[i], runs[i+1]) || again
	}
	if again {
		a.row.Again++
	}
	if n := len(runs); n > 0 {
		a.memory(id, runs, runs[n-1].History, runs[n-1].Attempt-1)
		if record.gone > 0 && runs[n-1].At > record.gone {
			a.row.problem("job %s ran after its row was gone", id)
		}
	}
	if dead {
		a.letter(id, record, runs, letter)
	} else if n := len(runs); n > 0 {
		a.row.Crashes += countCrashes(runs[n-1].History)
	}
}

// followed audits two runs of a job, one after the other. It returns true if the first one did not
// fail as ordered.
func (a *audit) followed(id string, record *jobRecord, r, next jobRun) (again bool) {
	if next.Attempt <= r.Attempt {
		a.row.problem("job %s: attempt %d after attempt %d", id, next.Attempt, r.Attempt)
	}
	if reasonAt(next.History, r.Attempt) == job.ReasonFailed {
		return false // as ordered
	}
	cause := a.cause(r, next.At)
	if cause == "" {
		a.row.problem("job %s ran again after attempt %d, and nothing allows it", id, r.Attempt)
	}
	a.row.Because[cause]++
	if record.held && r.Attempt == 1 && !a.row.mayAgain && cause != causeLease {
		a.row.problem("job %s ran again; the kill of a %s must not cause that here", id, a.row.Target)
	}
	return true
}

// cause returns what kept the end of a run from being stored until then, or "".
func (a *audit) cause(r jobRun, then int64) string {
	if a.unsettled[key(r.Job, r.Attempt)] {
		return causeLease
	}
	lease := int64(a.lease)
	for _, k := range a.kills {
		late := r.ended > 0 && k.at > r.ended+lease // the worker would have given up by then
		switch {
		case late || k.at > then:
		case k.target == targetChild && k.pid == r.PID && (k.by == 0 || k.by >= r.At),
			k.target == targetWorker && k.worker == r.Owner:
			if r.ended == 0 {
				return causeKilled
			}
			return causeUnstored
		case k.target == targetServer && (k.by == 0 || k.by >= r.At):
			return causeUnstored
		}
	}
	return ""
}

// timeline returns what happened to the jobs and the targets, one line each, in seconds since the
// first effect.
func (w *workload) timeline(all []effect) (lines []string) {
	if len(all) == 0 {
		return nil
	}
	type line struct {
		at   int64
		text string
	}
	var found []line
	for _, e := range all {
		text := fmt.Sprintf("job %s: attempt %d %s in worker %s, pid %d", e.Job, e.Attempt, e.What, e.Owner, e.PID)
		switch e.What {
		case effectBegan:
			text += fmt.Sprintf("; it remembers %v", e.History)
		case effectEvent, effectUnsettled:
			text += ": " + e.Note
		}
		found = append(found, line{e.At, text})
	}
	for _, k := range w.kills {
		found = append(found, line{k.at, fmt.Sprintf("kill of %s %s, pid %d", k.target, k.worker, k.pid)})
		if k.by > 0 {
			found = append(found, line{k.by, fmt.Sprintf("killed %s %s, pid %d", k.target, k.worker, k.pid)})
		}
	}
	slices.SortStableFunc(found, func(x, y line) int { return cmp.Compare(x.at, y.at) })
	for _, l := range found {
		lines = append(lines, fmt.Sprintf("%.4f %s", time.Duration(l.at-found[0].at).Seconds(), l.text))
	}
	return lines
}

func reasonAt(history []pastAttempt, attempt int) job.Reason {
	for _, past := range history {
		if past.Attempt == attempt {
			return past.Reason
		}
	}
	return ""
}

// memory checks that a job remembers each attempt that it had, with the right reason.
func (a *audit) memory(id string, runs []jobRun, history []pastAttempt, attempts int) {
	if len(history) != attempts {
		a.row.problem("job %s: %d attempts and a memory of %v", id, attempts, history)
		return
	}
	for i, past := range history {
		at := slices.IndexFunc(runs, func(r jobRun) bool { return r.Attempt == past.Attempt })
		switch {
		case past.Attempt != i+1:
			a.row.problem("job %s remembers %v", id, history)
		case past.Reason == job.ReasonFailed && (at < 0 || !runs[at].failed):
			a.row.problem("job %s: attempt %d counts as failed, and did not fail", id, past.Attempt)
		case past.Reason == job.ReasonCrashed && at < 0 && len(a.kills) == 0:
			a.row.problem("job %s: attempt %d counts as a crash and did not run, and nothing was killed",
				id, past.Attempt)
		case past.Reason == job.ReasonCrashed && at >= 0 && a.cause(runs[at], math.MaxInt64) == "":
			a.row.problem("job %s: attempt %d counts as a crash, and no process of it was killed", id, past.Attempt)
		case past.Reason != job.ReasonFailed && past.Reason != job.ReasonCrashed:
			a.row.problem("job %s: attempt %d ended with the reason %s", id, past.Attempt, past.Reason)
		}
	}
}

// maxCrashes is how many workers a job may crash, as docs/tables.md says.
const maxCrashes = 3

// letter checks a dead letter. The last attempt of its history is its own.
func (a *audit) letter(id string, record *jobRecord, runs []jobRun, f queue.FailedJob) {
	history := past(f.History)
	crashes := countCrashes(history)
	if len(history) == 0 {
		a.row.problem("job %s: a dead letter without a history", id)
		return
	}
	last := history[len(history)-1]
	a.memory(id, runs, history[:len(history)-1], f.Attempts-1)
	byLapse := f.Reason == job.ReasonExhausted // its last attempt crashed, and was the last one allowed
	if byLapse {
		crashes++
	}
	a.row.Crashes += f.Crashes
	if f.Crashes != crashes || last.Attempt != f.Attempts {
		a.row.problem("job %s: a dead letter with attempts %d and crashes %d, and a history of %v",
			id, f.Attempts, f.Crashes, history)
	}
	switch {
	case f.Reason == job.ReasonFailed && record.order.Fails >= record.tries && f.Attempts == record.tries:
	case byLapse && f.Attempts == record.tries:
	case f.Reason == job.ReasonCrashed && f.Crashes == maxCrashes:
	case f.Reason == job.ReasonCrashed && f.Attempts == record.tries: // a child died in the last attempt
	default:
		a.row.problem("job %s is dead with the reason %s after %d of %d attempts and %d crashes",
			id, f.Reason, f.Attempts, record.tries, f.Crashes)
	}
}

// doneAndDead checks a job that ran to its end and is dead: something must have kept the end from
// being stored.
func (a *audit) doneAndDead(id string, runs []jobRun, f queue.FailedJob) {
	for _, r := range runs {
		if r.ended > 0 && !r.failed && a.cause(r, math.MaxInt64) == "" {
			a.row.problem("job %s ran to its end, which nothing kept from being stored, and is dead with the reason %s",
				id, f.Reason)
		}
	}
}
