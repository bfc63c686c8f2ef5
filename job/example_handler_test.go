package job_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
)

// run runs a job of the handler's first type once and prints the decision.
func run(h job.Handler, payload any) {
	e, err := job.New(h.Types()[0], payload, nil, job.RetryPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	runner := &job.Runner{Policy: job.DefaultRetryPolicy().Fixed(time.Second), Logger: quiet}
	d := runner.Decide(context.Background(), h, e)
	fmt.Print(d.Outcome)
	if d.Delay > 0 {
		fmt.Print(" in ", d.Delay)
	}
	if d.Err != nil {
		fmt.Printf(" (%s: %v)", d.Reason, d.Err)
	}
	fmt.Println()
}

// A typed handler takes the decoded payload. A payload that does not fit is dead at once.
func ExampleTyped() {
	type order struct {
		OrderID int64 `json:"orderId"`
	}
	notify := job.Typed("order.paid.notify", func(_ context.Context, o order, _ job.Envelope) job.Result {
		fmt.Println("mail about order", o.OrderID)
		return job.Success()
	})
	run(notify, map[string]int64{"orderId": 10001})

	wrong, err := job.New("order.paid.notify", map[string]string{"orderId": "the last one"}, nil, job.RetryPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := (&job.Runner{Logger: quiet}).Decide(context.Background(), notify, wrong)
	fmt.Println(d.Outcome, d.Reason)
	// Output:
	// mail about order 10001
	// success
	// dead decode
}

// The six results of a handler and what a Runner makes of them.
func ExampleResult() {
	down := errors.New("mail server is down")
	for _, result := range []job.Result{
		job.Success(),
		job.Retry(down),
		job.Fail(errors.New("no such customer")),
		job.Discard("the order was cancelled"),
		job.Defer(time.Hour),
		job.Skip("another worker has it"),
	} {
		run(job.Func("notify", func(context.Context, job.Envelope) job.Result { return result }), nil)
	}
	// Output:
	// success
	// requeued in 1s (failed: mail server is down)
	// dead (failed: no such customer)
	// discarded (: the order was cancelled)
	// deferred in 1h0m0s
	// skipped (: another worker has it)
}

// FromError makes a result of an error. An error that Permanent marked is not tried again.
func ExamplePermanent() {
	send := func(customer string) error {
		switch customer {
		case "":
			return job.Permanent(errors.New("no such customer"))
		case "busy":
			return errors.New("mail server is busy")
		}
		return nil
	}
	for _, customer := range []string{"jo", "busy", ""} {
		run(job.Func("notify", func(context.Context, job.Envelope) job.Result {
			return job.FromError(send(customer))
		}), nil)
	}
	// Output:
	// success
	// requeued in 1s (failed: mail server is busy)
	// dead (failed: no such customer)
}

// A DeadError gives a failure a better reason than "failed".
func ExampleDeadError() {
	run(job.Func("report", func(context.Context, job.Envelope) job.Result {
		return job.Fail(&job.DeadError{Reason: job.ReasonTimeout, Err: errors.New("query took 10 minutes")})
	}), nil)
	// Output: dead (timeout: query took 10 minutes)
}

// A second handler of a type is an error; Replace is the way to put one in the place of another.
func ExampleRegistry() {
	ping := job.Func("ping", func(context.Context, job.Envelope) job.Result { return job.Success() })
	_, err := job.NewRegistry(ping, ping)
	fmt.Println(err)

	registry, err := job.NewRegistry(ping)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = registry.Require("pong")
	fmt.Println(registry.Types(), registry.Replace(ping), err)
	// Output:
	// job: type "ping" has two handlers; Replace puts one in place of another
	// [ping] <nil> job: no handler for type "pong"
}

// Layers nest: the first in the list is the outermost.
func ExampleWith() {
	named := func(name string) job.Middleware {
		return func(next job.HandleFunc) job.HandleFunc {
			return func(ctx context.Context, e job.Envelope) job.Result {
				fmt.Println(name, "before")
				result := next(ctx, e)
				fmt.Println(name, "after", result.Kind())
				return result
			}
		}
	}
	h := job.Func("ping", func(context.Context, job.Envelope) job.Result {
		fmt.Println("handler")
		return job.Success()
	})
	run(job.With(h, named("outer"), named("inner")), nil)
	// Output:
	// outer before
	// inner before
	// handler
	// inner after success
	// outer after success
	// success
}
