package queue

import (
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// maxCrashes is how many crashed workers make a job dead.
const maxCrashes = 3

// A completion is what becomes of a delivery, and why.
type completion struct {
	backend.Completion
	reason job.Reason
	err    error
}

// bury makes a completion that of a dead job.
func (c *completion) bury(reason job.Reason, err error) {
	c.Outcome, c.reason, c.err = job.Dead, reason, err
}

// stored returns the completion as the store gets it. That of a dead job has the letter; if the
// payload is no envelope, the letter's job gets the delivery's FallbackID.
func (c *completion) stored() backend.Completion {
	stored := c.Completion
	if c.Outcome != job.Dead {
		return stored
	}
	letter := job.NewDeadLetter(c.Delivery.Queue, c.Envelope, &job.DeadError{Reason: c.reason, Err: c.err})
	if letter.Job.JobID == "" {
		letter.Job.JobID = c.Delivery.FallbackID()
	}
	stored.Envelope = letter.Job
	stored.Letter = &letter
	return stored
}

// afterLapse returns what becomes of a job whose worker let the lease lapse.
func afterLapse(d *backend.Delivery, policy job.RetryPolicy) completion {
	c := completion{
		Completion: backend.Completion{Delivery: d, Outcome: job.Requeued, Crashed: true, Lapsed: true, DueAt: d.AvailableAt},
		reason:     job.ReasonCrashed, err: fmt.Errorf("lease lapsed; it was held by %s", d.ReservedBy),
	}
	if d.Crashes > 0 { // the first lapse may be bad luck
		c.DueAt = d.LeaseUntil.Add(policyFor(d, policy).Delay(max(d.Attempts, 1)))
	}
	e, err := d.Envelope()
	if err != nil {
		c.bury(job.ReasonDecode, err)
		return c
	}
	c.Envelope = e
	switch {
	case d.Crashes+1 >= maxCrashes:
		c.bury(c.reason, fmt.Errorf("crashed %d workers; %w", d.Crashes+1, c.err))
	case d.Attempts >= attemptLimit(e, policy):
		c.bury(job.ReasonExhausted, fmt.Errorf("all %d attempts are used up; %w", d.Attempts, c.err))
	default:
		failed := job.AttemptError{Attempt: d.Attempts, At: d.LeaseUntil.Unix(), Reason: c.reason, Error: c.err.Error()}
		c.Envelope = job.WithFailure(e, failed, job.MaxFailures)
	}
	return c
}

// attemptLimit returns the smaller of the job's limit and that of the worker's policy, if there is
// one. job.Unlimited is larger than any count.
func attemptLimit(e job.Envelope, policy job.RetryPolicy) int {
	limit := max(e.MaxAttempts, 1)
	if policy != (job.RetryPolicy{}) {
		limit = min(limit, max(policy.MaxAttempts, 1))
	}
	return limit
}

// policyFor returns the policy with the delay that the job was pushed with, if any.
func policyFor(d *backend.Delivery, policy job.RetryPolicy) job.RetryPolicy {
	if d.Backoff != nil {
		return policy.Fixed(*d.Backoff)
	}
	return policy
}

var eventKinds = map[job.Outcome]job.EventKind{
	job.Dead: job.EventDead, job.Requeued: job.EventRequeued,
	job.Deferred: job.EventDeferred, job.Unsettled: job.EventUnsettled,
}

// event returns the event of a completion that the Runner did not decide.
func (c *completion) event(by string) job.Event {
	return job.Event{
		Kind: eventKinds[c.Outcome], By: by, At: time.Now(), JobID: c.Envelope.JobID, JobType: c.Envelope.JobType,
		Attempt: c.Delivery.Attempts, Delay: c.Delay, Reason: c.reason, Err: c.err,
	}
}
