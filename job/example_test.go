package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/taskd-go/task/job"
)

// quiet keeps the log of retries out of the examples' output.
var quiet = slog.New(slog.DiscardHandler)

// A transport gives each message to Run and stores what the callbacks get. It acknowledges the
// message when Run has returned without an error.
func ExampleRunner_Run() {
	type order struct {
		OrderID int64 `json:"orderId"`
	}
	registry, err := job.NewRegistry(job.Typed("order.paid.notify",
		func(_ context.Context, o order, e job.Envelope) job.Result {
			if e.Attempt == 1 {
				return job.Retry(errors.New("mail server is busy"))
			}
			fmt.Println("mail about order", o.OrderID)
			return job.Success()
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	runner := &job.Runner{Policy: job.DefaultRetryPolicy(), Timeout: time.Minute, Logger: quiet}
	dead := job.NewMemoryDeadLetters()

	message := []byte(`{"v":1,"jobId":"job_1","jobType":"order.paid.notify","payload":{"orderId":10001}}`)
	for message != nil {
		e, err := job.Decode(message)
		if err != nil {
			fmt.Println(err)
			return
		}
		message = nil // acknowledged, unless it is requeued
		outcome, err := runner.RunRegistered(context.Background(), registry, e,
			func(_ context.Context, next job.Envelope, _ time.Duration) (err error) {
				message, err = next.Encode()
				return err
			},
			job.DeadLetterTo(dead, job.DefaultQueue))
		fmt.Println(outcome, err)
	}
	// Output:
	// requeued <nil>
	// mail about order 10001
	// success <nil>
}

// Decide runs the handler and stores nothing: the caller does that by the decision.
func ExampleRunner_Decide() {
	h := job.Func("import", func(context.Context, job.Envelope) job.Result {
		return job.RetryAfter(errors.New("supplier is down"), 10*time.Minute)
	})
	e, err := job.New("import", map[string]int{"supplier": 7}, nil, job.RetryPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	runner := &job.Runner{Logger: quiet}
	d := runner.Decide(context.Background(), h, e)
	fmt.Printf("%s: attempt %d in %s, because %s: %v\n", d.Outcome, d.Envelope.Attempt, d.Delay, d.Reason, d.Err)
	// Output: requeued: attempt 2 in 10m0s, because failed: supplier is down
}

// A Runner reports each change of a job's state.
func ExampleRunner_onEvent() {
	runner := &job.Runner{Name: "worker 1", Logger: quiet, OnEvent: func(ev job.Event) {
		fmt.Printf("%s: %s %s %q\n", ev.By, ev.JobType, ev.Kind, ev.Reason)
	}}
	h := job.Func("import", func(context.Context, job.Envelope) job.Result { panic("no supplier") })
	e, err := job.New("import", nil, nil, job.RetryPolicy{MaxAttempts: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	runner.Decide(context.Background(), h, e)
	// Output:
	// worker 1: import started ""
	// worker 1: import dead "panic"
}

// Without jitter the delays of the default policy double from 1 s up to 300 s.
func ExampleRetryPolicy() {
	policy := job.DefaultRetryPolicy()
	for _, attempt := range []int{1, 2, 3, 4, 20} {
		fmt.Println("after attempt", attempt, "wait", policy.BaseDelayFor(attempt), "retry", policy.ShouldRetry(attempt))
	}
	// Output:
	// after attempt 1 wait 1s retry true
	// after attempt 2 wait 2s retry true
	// after attempt 3 wait 4s retry true
	// after attempt 4 wait 8s retry true
	// after attempt 20 wait 5m0s retry false
}

// Fixed gives a policy one delay for all attempts.
func ExampleRetryPolicy_Fixed() {
	policy := job.DefaultRetryPolicy().Fixed(time.Minute)
	fmt.Println(policy.MaxAttempts, policy.Delay(1), policy.Delay(4))
	// Output: 5 1m0s 1m0s
}

// A Publisher makes envelopes and gives them to a transport, here a channel.
func ExamplePublisher() {
	transport := make(chan []byte, 1)
	publisher := job.NewPublisher(func(ctx context.Context, e job.Envelope) error {
		message, err := e.Encode()
		if err != nil {
			return err
		}
		select {
		case transport <- message:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, job.RetryPolicy{MaxAttempts: 3})

	payload := map[string]int{"orderId": 10001}
	sent, err := publisher.Dispatch(context.Background(), "order.paid.notify", payload, map[string]any{"tenant": "t1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	received, err := job.Decode(<-transport)
	fmt.Println(received.JobID == sent.JobID, err)
	fmt.Println(received.JobType, string(received.Payload), received.MetaString("tenant", "none"), received.MaxAttempts)
	// Output:
	// true <nil>
	// order.paid.notify {"orderId":10001} t1 3
}

// Messages from before there were envelopes become the payload of a job.
func ExampleDecodeLegacy() {
	for _, message := range []string{
		`{"orderId": 10001}`,
		`plain text`,
		`{"v": 1, "jobId": "J", "jobType": "order.paid.notify", "payload": {"orderId": 10001}}`,
	} {
		e, err := job.DecodeLegacy(message, "legacy")
		fmt.Println(e.JobType, string(e.Payload), err)
	}
	// Output:
	// legacy {"orderId":10001} <nil>
	// legacy {"value":"plain text"} <nil>
	// order.paid.notify {"orderId": 10001} <nil>
}

// A message that is not an envelope says why.
func ExampleDecode() {
	_, err := job.Decode([]byte(`{"jobType": "order.paid.notify", "payload": "text"}`))
	var wrong *job.DecodeError
	fmt.Println(errors.As(err, &wrong) && wrong.Reason == job.PayloadNotObject)
	fmt.Println(err)
	// Output:
	// true
	// job: payload must be an object or array
}

// Build makes a program's parts of settings, such as those of the environment.
func ExampleConfig_Build() {
	env := map[string]string{"JOB_MAX_ATTEMPTS": "3", "JOB_BASE_DELAY_MS": "soon", "JOB_DLQ": "memory"}
	config, ignored := job.ReadConfig(nil, func(name string) string { return env[name] })
	fmt.Println("ignored:", ignored)

	parts, err := config.Build(nil, job.Func("ping", func(context.Context, job.Envelope) job.Result {
		return job.Success()
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer parts.Close()
	fmt.Println(parts.Registry.Types(), parts.Policy.MaxAttempts, parts.Policy.BaseDelay, parts.Runner.Timeout)
	// Output:
	// ignored: [JOB_BASE_DELAY_MS=soon]
	// [ping] 3 1s 2m0s
}
