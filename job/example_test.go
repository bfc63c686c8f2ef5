package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/taskd-go/task/job"
)

// A transport hands each message to Run and stores what the callbacks get. It acknowledges the
// message when Run returned without an error.
func ExampleRunner_Run() {
	type order struct {
		OrderID int64 `json:"orderId"`
	}
	registry, err := job.NewRegistry(job.Typed("order.paid.notify",
		func(_ context.Context, o order, e job.Envelope) job.Result {
			if e.Attempt == 1 {
				return job.Retry(errors.New("mail server is busy"))
			}
			fmt.Println("the customer hears of order", o.OrderID)
			return job.Success()
		}))
	if err != nil {
		panic(err)
	}
	runner := &job.Runner{Policy: job.DefaultRetryPolicy(), Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	dead := job.NewMemoryDeadLetters()

	message := []byte(`{"v":1,"jobId":"job_20260712_ab12cd34ef56","jobType":"order.paid.notify","payload":{"orderId":10001}}`)
	for message != nil {
		e, err := job.Decode(message)
		if err != nil {
			panic(err)
		}
		message = nil
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
	// the customer hears of order 10001
	// success <nil>
}
