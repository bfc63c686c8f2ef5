package queue

import (
	"context"

	"github.com/taskd-go/task/queue/backend"
)

const controlWhat = "orders for workers"

// Pause keeps workers from taking jobs of a queue, "" is every queue, within a second; what runs goes on. It holds,
// whatever workers come and go, until Resume.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	c, err := as[backend.Control](q, controlWhat)
	if err == nil {
		err = checkQueues(queue)
	}
	if err != nil {
		return err
	}
	return c.Pause(ctx, queue)
}

// Resume ends the Pause of the same queue. What was not paused is no error.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	c, err := as[backend.Control](q, controlWhat)
	if err == nil {
		err = checkQueues(queue)
	}
	if err != nil {
		return err
	}
	err = c.Resume(ctx, queue)
	q.workers.wake()
	return err
}

// Paused returns the paused queues; "" among them is every queue.
func (q *Queue) Paused(ctx context.Context) ([]string, error) {
	o, err := q.orders(ctx)
	return o.Paused, err
}

// Restart makes every worker that runs now finish what it has and return ErrRestart, within a second after its last
// look. A service manager that starts them again gets the new code.
func (q *Queue) Restart(ctx context.Context) error {
	c, err := as[backend.Control](q, controlWhat)
	if err != nil {
		return err
	}
	return c.Restart(ctx)
}

// Cancel removes a job. One that runs is taken away from its worker: whatever it answers counts for nothing, and its
// handler's context ends with ErrCancelled within a second or so. Without such a live job it returns ErrNotFound.
func (q *Queue) Cancel(ctx context.Context, id string) error {
	c, err := as[backend.Control](q, "cancellation")
	if err != nil {
		return err
	}
	return c.Cancel(ctx, id)
}

// orders returns those in force, none if the store keeps none.
func (q *Queue) orders(ctx context.Context) (backend.Orders, error) {
	if c, ok := q.backend.(backend.Control); ok {
		return c.Orders(ctx)
	}
	return backend.Orders{}, nil
}
