package job_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/taskd-go/task/job"
)

// bury stores the dead letter of a job that failed in each of its attempts.
func bury(store job.DeadLetters, jobType string, errs ...error) {
	e, err := job.New(jobType, map[string]string{"type": jobType}, nil, job.RetryPolicy{MaxAttempts: len(errs)})
	if err != nil {
		fmt.Println(err)
		return
	}
	runner := &job.Runner{Policy: job.RetryPolicy{MaxAttempts: len(errs)}, KeepErrors: job.MaxFailures, Logger: quiet}
	for _, failure := range errs {
		h := job.Func(jobType, func(context.Context, job.Envelope) job.Result { return job.Retry(failure) })
		d := runner.Decide(context.Background(), h, e)
		e = d.Envelope
		if d.Outcome == job.Dead {
			reason := &job.DeadError{Reason: d.Reason, Err: d.Err}
			_, err := store.Put(context.Background(), job.NewDeadLetter("mail", e, reason))
			if err != nil {
				fmt.Println(err)
			}
		}
	}
}

// A dead letter has the errors of all attempts.
func ExampleDeadLetters() {
	ctx := context.Background()
	store := job.NewMemoryDeadLetters()
	bury(store, "order.paid.notify", errors.New("mail server is busy"), errors.New("mail server is down"))

	page, _, err := store.Page(ctx, "mail", "", 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range page {
		fmt.Println(d.Job.JobType, "is dead:", d.Error)
		for _, failed := range d.Attempts {
			fmt.Println("attempt", failed.Attempt, failed.Reason, failed.Error)
		}
	}
	// Output:
	// order.paid.notify is dead: mail server is down
	// attempt 1 failed mail server is busy
	// attempt 2 failed mail server is down
}

// Replay publishes the jobs of dead letters again, with all their attempts, and removes the
// letters.
func ExampleReplay() {
	ctx := context.Background()
	store := job.NewMemoryDeadLetters()
	bury(store, "order.paid.notify", errors.New("mail server is down"))
	bury(store, "report.export", errors.New("disk is full"))
	bury(store, "order.paid.notify", errors.New("mail server is down"))

	publish := func(_ context.Context, e job.Envelope) error {
		fmt.Println("published", e.JobType, "attempt", e.Attempt, "after", len(job.Failures(e)), "failure")
		return nil
	}
	mail := job.Filter{Types: []string{"order.paid.notify"}, Limit: 100}
	mail.DryRun = true
	n, err := job.Replay(ctx, store, publish, mail)
	fmt.Println(n, "would be replayed", err)

	mail.DryRun = false
	n, err = job.Replay(ctx, store, publish, mail)
	fmt.Println(n, "replayed", err)
	left, err := store.Len(ctx, "")
	fmt.Println(left, "left", err)
	// Output:
	// 2 would be replayed <nil>
	// published order.paid.notify attempt 1 after 1 failure
	// published order.paid.notify attempt 1 after 1 failure
	// 2 replayed <nil>
	// 1 left <nil>
}

// A letter that holds no job is set aside; it does not keep the others from being replayed.
func ExampleBrokenError() {
	ctx := context.Background()
	store := job.NewMemoryDeadLetters()
	message := []byte("not an envelope")
	_, err := job.Decode(message)
	if _, err := store.Put(ctx, job.RawDeadLetter("mail", message, err)); err != nil {
		fmt.Println(err)
		return
	}
	bury(store, "order.paid.notify", errors.New("mail server is down"))

	n, err := job.Replay(ctx, store, func(context.Context, job.Envelope) error { return nil }, job.Filter{Limit: 100})
	var broken *job.BrokenError
	fmt.Println(n, "replayed,", errors.As(err, &broken) && len(broken.IDs) == 1)
	// Output: 1 replayed, true
}

// The entries of the Redis list that other programs of the format use can be read too.
func ExampleDecodeDeadLetter() {
	d := job.DecodeDeadLetter([]byte(`{"job": {"jobType": "order.paid.notify"}, "error": "exhausted", "at": 1796021384}`))
	fmt.Println(d.Job.JobType, d.Error, d.At, d.Broken == "")
	// Output: order.paid.notify exhausted 1796021384 true
}
