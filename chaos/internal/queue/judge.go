package queue

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// Why a job may run again, or an attempt be used up. The list is closed: what has none of these reasons is off.
const (
	becauseCut      = "killed while it ran"
	becauseUnstored = "killed before its end was stored"
	becauseLease    = "lease lost before its end was stored"
)

// A reckoning holds the effects of a plot against what was asked, what was killed and what the database says.
type reckoning struct {
	*plot
	runs      map[string][]jobRun
	unsettled map[string]bool // job and attempt
	letters   map[string]queue.FailedJob
	row       *chaosRow
}

// A jobRun is one run of a job.
type jobRun struct {
	effect
	ended  int64 // unix nanoseconds; 0: it did not come to its end
	failed bool
}

func key(jobID string, attempt int) string { return fmt.Sprintf("%s/%d", jobID, attempt) }

// judge fills the row.
func (p *plot) judge(ctx context.Context, row *chaosRow) error {
	j := &reckoning{plot: p, runs: map[string][]jobRun{}, unsettled: map[string]bool{}, letters: map[string]queue.FailedJob{}, row: row}
	all, err := readEffects(p.dir)
	if err != nil {
		return err
	}
	j.sort(all)
	for letter, err := range p.db.queue.Failed(ctx, queue.Filter{}) {
		if err != nil {
			return err
		}
		if _, twice := j.letters[letter.JobID]; twice {
			p.offf("job %s: two dead letters", letter.JobID)
		}
		j.letters[letter.JobID] = letter
		row.Dead++
	}
	row.Because = map[string]int{}
	for id, plan := range p.plans {
		j.job(id, plan)
	}
	row.more(p.off)
	return nil
}

// sort makes runs of effects.
func (j *reckoning) sort(all []effect) {
	slices.SortFunc(all, func(a, b effect) int { return cmp.Compare(a.At, b.At) })
	for _, e := range all {
		runs := j.runs[e.Job]
		switch e.What {
		case effectBegan:
			j.runs[e.Job] = append(runs, jobRun{effect: e})
			if !e.Alone {
				j.offf("job %s: attempt %d began while another one ran", e.Job, e.Attempt)
			}
		case effectEnded:
			i := slices.IndexFunc(runs, func(r jobRun) bool { return r.PID == e.PID && r.Attempt == e.Attempt })
			if i < 0 {
				j.offf("job %s: attempt %d ended and had not begun", e.Job, e.Attempt)
				continue
			}
			runs[i].ended, runs[i].failed = e.At, e.Failed
		case effectUnsettled:
			j.unsettled[key(e.Job, e.Attempt)] = true
		}
	}
}

func (j *reckoning) job(id string, p *plan) {
	if p.stored {
		j.row.Jobs++
	} else {
		j.row.Unanswered++
	}
	runs := j.runs[id]
	letter, dead := j.letters[id]
	done := slices.ContainsFunc(runs, func(r jobRun) bool { return r.ended > 0 && !r.failed })
	if p.stored && !done && !dead {
		j.row.Lost++
		j.row.offf("job %s is lost: it did not run to its end and is no dead letter", id)
	}
	if done && dead {
		j.doneAndDead(id, runs, letter)
	}
	again := false
	for i := range runs[:max(len(runs)-1, 0)] {
		again = j.followed(id, p, runs[i], runs[i+1]) || again
	}
	if again {
		j.row.Again++
	}
	if n := len(runs); n > 0 {
		j.memory(id, runs, runs[n-1].History, runs[n-1].Attempt-1)
		if p.gone > 0 && runs[n-1].At > p.gone {
			j.row.offf("job %s ran after its row was gone", id)
		}
	}
	if dead {
		j.letter(id, p, runs, letter)
	} else if n := len(runs); n > 0 {
		j.row.Crashes += countCrashes(runs[n-1].History)
	}
}

// followed judges two runs of a job, one after the other. again: the first one was not meant to be followed.
func (j *reckoning) followed(id string, p *plan, r, next jobRun) (again bool) {
	if next.Attempt <= r.Attempt {
		j.row.offf("job %s: attempt %d after attempt %d", id, next.Attempt, r.Attempt)
	}
	if reasonAt(next.History, r.Attempt) == job.ReasonFailed {
		return false // as it was told to
	}
	why := j.why(r, next.At)
	if why == "" {
		j.row.offf("job %s ran again, and nothing allows it: %s", id, j.timeline(r, next))
	}
	j.row.Because[why]++
	if p.held && r.Attempt == 1 && !j.row.mayAgain && why != becauseLease {
		j.row.offf("job %s ran again; a %s killed here must not have that effect", id, j.row.Victim)
	}
	return true
}

// why is what kept the end of a run from being stored until then.
func (j *reckoning) why(r jobRun, then int64) string {
	if j.unsettled[key(r.Job, r.Attempt)] {
		return becauseLease
	}
	lease := int64(j.lease)
	for _, k := range j.kills {
		late := r.ended > 0 && k.at > r.ended+lease // it would have been given up by then
		switch {
		case late || k.at > then:
		case k.victim == victimChild && k.pid == r.PID && (k.by == 0 || k.by >= r.At),
			k.victim == victimWorker && k.worker == r.Owner:
			if r.ended == 0 {
				return becauseCut
			}
			return becauseUnstored
		case k.victim == victimServer && (k.by == 0 || k.by >= r.At):
			return becauseUnstored
		}
	}
	return ""
}

// timeline tells what happened around two runs, in seconds since the first one's beginning.
func (j *reckoning) timeline(r, next jobRun) string {
	since := func(at int64) string { return fmt.Sprintf("%.3f", time.Duration(at-r.At).Seconds()) }
	var b strings.Builder
	fmt.Fprintf(&b, "attempt %d of worker %s, pid %d, began at 0", r.Attempt, r.Owner, r.PID)
	if r.ended > 0 {
		fmt.Fprintf(&b, ", ended at %s", since(r.ended))
	}
	fmt.Fprintf(&b, "; attempt %d of worker %s, pid %d, began at %s and knew of %v", next.Attempt, next.Owner, next.PID, since(next.At), next.History)
	for _, k := range j.kills {
		if near := int64(2 * j.lease); k.at > r.At-near && k.at < next.At+near {
			fmt.Fprintf(&b, "; %s %s, pid %d, killed at %s", k.victim, k.worker, k.pid, since(k.at))
			if k.by > 0 {
				fmt.Fprintf(&b, " to %s", since(k.by))
			}
		}
	}
	return b.String()
}

func reasonAt(history []pastAttempt, attempt int) job.Reason {
	for _, a := range history {
		if a.Attempt == attempt {
			return a.Reason
		}
	}
	return ""
}

// memory checks that a job remembers each attempt that it had, and rightly.
func (j *reckoning) memory(id string, runs []jobRun, history []pastAttempt, attempts int) {
	if len(history) != attempts {
		j.row.offf("job %s: %d attempts and a memory of %v", id, attempts, history)
		return
	}
	for i, a := range history {
		at := slices.IndexFunc(runs, func(r jobRun) bool { return r.Attempt == a.Attempt })
		switch {
		case a.Attempt != i+1:
			j.row.offf("job %s remembers %v", id, history)
		case a.Reason == job.ReasonFailed && (at < 0 || !runs[at].failed):
			j.row.offf("job %s: attempt %d counts as failed, and did not fail", id, a.Attempt)
		case a.Reason == job.ReasonCrashed && at < 0 && len(j.kills) == 0:
			j.row.offf("job %s: attempt %d counts as a crash, did not run, and nobody was killed", id, a.Attempt)
		case a.Reason == job.ReasonCrashed && at >= 0 && j.why(runs[at], math.MaxInt64) == "":
			j.row.offf("job %s: attempt %d counts as a crash, and nothing of it was killed", id, a.Attempt)
		case a.Reason != job.ReasonFailed && a.Reason != job.ReasonCrashed:
			j.row.offf("job %s: attempt %d ended with the reason %s", id, a.Attempt, a.Reason)
		}
	}
}

// maxChaosCrashes is how many workers a job may crash, as docs/tables.md says.
const maxChaosCrashes = 3

// letter checks a dead letter. The last attempt of its history is its own.
func (j *reckoning) letter(id string, p *plan, runs []jobRun, f queue.FailedJob) {
	history := past(f.History)
	crashes := countCrashes(history)
	if len(history) == 0 {
		j.row.offf("job %s: a dead letter without a history", id)
		return
	}
	last := history[len(history)-1]
	j.memory(id, runs, history[:len(history)-1], f.Attempts-1)
	byLapse := f.Reason == job.ReasonExhausted // its last attempt was a crash, and there was no other left
	if byLapse {
		crashes++
	}
	j.row.Crashes += f.Crashes
	if f.Crashes != crashes || last.Attempt != f.Attempts {
		j.row.offf("job %s: a dead letter with attempts %d and crashes %d, and a history of %v", id, f.Attempts, f.Crashes, history)
	}
	switch {
	case f.Reason == job.ReasonFailed && p.order.Fails >= p.tries && f.Attempts == p.tries:
	case byLapse && f.Attempts == p.tries:
	case f.Reason == job.ReasonCrashed && f.Crashes == maxChaosCrashes:
	case f.Reason == job.ReasonCrashed && f.Attempts == p.tries: // a child of the pool took the last attempt with it
	default:
		j.row.offf("job %s is dead with the reason %s after %d of %d attempts and %d crashes", id, f.Reason, f.Attempts, p.tries, f.Crashes)
	}
}

// doneAndDead is a job whose good end was not stored and whose last attempt then failed: it may not be.
func (j *reckoning) doneAndDead(id string, runs []jobRun, f queue.FailedJob) {
	for _, r := range runs {
		if r.ended > 0 && !r.failed && j.why(r, math.MaxInt64) == "" {
			j.row.offf("job %s ran to its end, which nothing kept from being stored, and is dead with the reason %s", id, f.Reason)
		}
	}
}
