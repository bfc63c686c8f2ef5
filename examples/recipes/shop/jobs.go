package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
)

// Receipt is a job. Its exported fields are its arguments and are stored as JSON.
type Receipt struct{ OrderID int }

// JobType names the kind of job in the database.
func (Receipt) JobType() string { return "order.receipt" }

// Handle runs the job.
func (r Receipt) Handle(ctx context.Context) error {
	if r.OrderID <= 0 {
		return job.Permanent(errors.New("there is no such order")) // no further attempt would help
	}
	return send(ctx, "receipt", r.OrderID) // after another error it runs again, later
}

// Invoice is a job with a policy of its own.
type Invoice struct{ OrderID int }

func (Invoice) JobType() string { return "order.invoice" }

func (i Invoice) Handle(ctx context.Context) error { return send(ctx, "invoice", i.OrderID) }

func (Invoice) Tries() int { return 3 }

func (Invoice) Timeout() time.Duration { return 10 * time.Second }

func (Invoice) Backoff(int) time.Duration { return 10 * time.Millisecond }

func (i Invoice) Failed(_ context.Context, err error) {
	fmt.Printf("invoice %d is dead: %v\n", i.OrderID, err)
}

// A Shipment is the payload of the jobs of type "order.ship".
type Shipment struct{ OrderID int }

// ship is a handler that needs more than its payload, and answers with more than an error.
func ship(c *carrier) job.Handler {
	return job.Typed("order.ship", func(ctx context.Context, s Shipment, _ job.Envelope) job.Result {
		err := c.ship(ctx, s.OrderID)
		switch {
		case errors.Is(err, errCancelled):
			return job.Discard("the order was cancelled")
		case errors.Is(err, errAddress):
			return job.Fail(err)
		case errors.Is(err, errClosed):
			return job.Defer(20 * time.Millisecond)
		case errors.Is(err, errBusy):
			return job.RetryAfter(err, 20*time.Millisecond)
		default:
			return job.FromError(err) // nil: success; else a retry
		}
	})
}

// Thumbnail is a job that computes. It runs in a worker process, where its time limit can be enforced.
type Thumbnail struct{ Image string }

func (Thumbnail) JobType() string { return "image.thumbnail" }

func (t Thumbnail) Handle(context.Context) error {
	fmt.Println("thumbnail of", t.Image)
	return nil
}
