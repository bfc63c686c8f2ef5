package queue

import (
	"context"
	"iter"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

// Counts counts the live jobs of a queue by state; "" means every queue. It counts each state up to
// MaxCount, which bounds what it costs.
func (q *Queue) Counts(ctx context.Context, queue string) (Counts, error) {
	a, err := as[backend.Admin](q, "counts")
	if err != nil {
		return Counts{}, err
	}
	return a.Counts(ctx, queue)
}

// Size returns the number of live jobs of a queue, the sum of Counts; "" means every queue.
func (q *Queue) Size(ctx context.Context, queue string) (int64, error) {
	c, err := q.Counts(ctx, queue)
	return c.Size(), err
}

// List yields the live jobs of a queue ("" means every queue) in the order of their ids. It reads a
// page at a time, so jobs that come or go meanwhile may be missing or still appear. It ends after
// an error.
func (q *Queue) List(ctx context.Context, queue string) iter.Seq2[JobInfo, error] {
	a, err := as[backend.Admin](q, "list of jobs")
	if err != nil {
		return only[JobInfo](err)
	}
	return a.List(ctx, queue)
}

// Inspect returns what the store has of a job, by the id that Push returned: the live job and its
// dead letters. If there is neither, it returns ErrNotFound.
func (q *Queue) Inspect(ctx context.Context, id string) (Record, error) {
	a, err := as[backend.Admin](q, "look at one job")
	if err != nil {
		return Record{}, err
	}
	return a.Inspect(ctx, id)
}

// Clear removes the jobs of a queue ("" means every queue) that no worker has reserved, and returns
// their number. It keeps dead letters.
func (q *Queue) Clear(ctx context.Context, queue string) (n int64, err error) {
	a, err := as[backend.Admin](q, "removal of jobs")
	if err != nil {
		return 0, err
	}
	return a.Clear(ctx, queue)
}

// Failed yields the dead letters that f chooses, the oldest first. It reads a page at a time, and
// ends after an error.
func (q *Queue) Failed(ctx context.Context, f Filter) iter.Seq2[FailedJob, error] {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return only[FailedJob](err)
	}
	return a.Failed(ctx, f)
}

// FailedByID returns one dead letter, or ErrNotFound.
func (q *Queue) FailedByID(ctx context.Context, id string) (FailedJob, error) {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return FailedJob{}, err
	}
	return a.FailedByID(ctx, id)
}

// CountFailed counts the dead letters that f chooses, by error class. Many of one class suggest a
// fault that would also fail a replay.
func (q *Queue) CountFailed(ctx context.Context, f Filter) (byClass map[string]int, err error) {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return nil, err
	}
	return a.CountFailed(ctx, f)
}

// Retry puts the jobs of dead letters back into their queues, due at once, with all their attempts
// again and with the ids that they had before. It moves one letter after another, in the order of
// ids, and stops at the first error. For a letter that is gone, for example because another call
// retried it, that is ErrNotFound. A letter whose unique key a live job has stays dead but does not
// stop Retry, which returns a *TakenError at the end.
func (q *Queue) Retry(ctx context.Context, ids ...string) error {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return err
	}
	defer q.workers.wake()
	return a.Retry(ctx, ids...)
}

// RetryAll retries the dead letters that f chooses, the oldest first, and returns how many it put
// back. It holds only a chunk of them in memory. A letter that the store refuses, for example as
// too large, stays dead and holds up no other; the error at the end wraps a *ReplayError for each.
// If the store refuses two letters in a row for another reason than their size, the store itself
// seems to fail, and RetryAll returns that error. It can be called again after an error and
// continues with the letters that are left.
func (q *Queue) RetryAll(ctx context.Context, f Filter) (n int, err error) {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return 0, err
	}
	defer q.workers.wake()
	progress := f.Progress
	f.Progress = func(done, of int) {
		q.workers.wake()
		if progress != nil {
			progress(done, of)
		}
	}
	return a.RetryAll(ctx, f)
}

// Prune removes the dead letters of a queue ("" means every queue) that died more than age ago, by
// the store's clock, and returns their number. Besides Prune only Retry and RetryAll remove dead
// letters.
func (q *Queue) Prune(ctx context.Context, queue string, age time.Duration) (n int64, err error) {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return 0, err
	}
	return a.Prune(ctx, queue, age)
}

const deadWhat = "dead letters to look at"

// only returns an iterator that yields err alone.
func only[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

const controlWhat = "orders for workers"

// Pause makes all workers stop taking jobs of a queue ("" means every queue), within about a
// second. Running jobs go on. The pause lasts until Resume, for workers that start later too.
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

// Resume ends the Pause of the same queue. It returns no error if the queue was not paused.
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

// Paused returns the paused queues. "" among them means that every queue is paused.
func (q *Queue) Paused(ctx context.Context) ([]string, error) {
	o, err := q.orders(ctx)
	return o.Paused, err
}

// Restart makes all running workers take no more jobs within about a second, and finish the running
// ones. Then Work returns ErrRestart, and a service manager can start the new version of the
// program.
func (q *Queue) Restart(ctx context.Context) error {
	c, err := as[backend.Control](q, controlWhat)
	if err != nil {
		return err
	}
	return c.Restart(ctx)
}

// Cancel removes a live job; if there is none of that id, it returns ErrNotFound. If a worker runs
// the job, the handler's context ends within about a second, with the cause ErrCancelled, and the
// handler's result does not count.
func (q *Queue) Cancel(ctx context.Context, id string) error {
	c, err := as[backend.Control](q, "cancellation")
	if err != nil {
		return err
	}
	return c.Cancel(ctx, id)
}

// orders returns the orders in force. A store without backend.Control has none.
func (q *Queue) orders(ctx context.Context) (backend.Orders, error) {
	if c, ok := q.backend.(backend.Control); ok {
		return c.Orders(ctx)
	}
	return backend.Orders{}, nil
}
