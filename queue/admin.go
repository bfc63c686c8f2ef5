package queue

import (
	"context"
	"iter"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

// Counts counts the jobs of a queue; "" means every queue. It counts each state up to MaxCount, so
// its cost has a bound.
func (q *Queue) Counts(ctx context.Context, queue string) (Counts, error) {
	a, err := as[backend.Admin](q, "counts")
	if err != nil {
		return Counts{}, err
	}
	return a.Counts(ctx, queue)
}

// Size returns the number of jobs of a queue in all states, each counted up to MaxCount; "" means
// every queue.
func (q *Queue) Size(ctx context.Context, queue string) (int64, error) {
	c, err := q.Counts(ctx, queue)
	return c.Size(), err
}

// List yields the live jobs of a queue ("" means every queue) in the order of their ids. It reads a
// page at a time, so jobs may come and go meanwhile. It ends after an error.
func (q *Queue) List(ctx context.Context, queue string) iter.Seq2[JobInfo, error] {
	a, err := as[backend.Admin](q, "list of jobs")
	if err != nil {
		return only[JobInfo](err)
	}
	return a.List(ctx, queue)
}

// Inspect returns what is known of a job by the id that Push returned: the live job, and the dead
// letters that it left. If there is neither, it returns ErrNotFound.
func (q *Queue) Inspect(ctx context.Context, id string) (Record, error) {
	a, err := as[backend.Admin](q, "look at one job")
	if err != nil {
		return Record{}, err
	}
	return a.Inspect(ctx, id)
}

// Clear removes the jobs of a queue ("" means every queue) that no worker has, and returns their
// number. It keeps dead letters.
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

// Retry puts dead letters back into their queues, due at once, with all their attempts again and
// the ids that their jobs had. Each letter goes by itself, in the order of ids, up to the first
// error: a letter that is gone, for example because another call retried it, is ErrNotFound.
// Letters whose unique key is taken stay, and the error at the end is a *TakenError.
func (q *Queue) Retry(ctx context.Context, ids ...string) error {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return err
	}
	defer q.workers.wake()
	return a.Retry(ctx, ids...)
}

// RetryAll is Retry for the dead letters that f chooses, the oldest first, and returns how many are
// back. It keeps at most a chunk of them in memory. A letter that the store does not take, such as
// one that is too large for it, stays dead and holds up no other; the error at the end has a
// *ReplayError for each. Two such letters in a row, unless they are too large, end the run, since
// then the store itself fails. After an error RetryAll can be called again and goes on.
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
// the store's clock, and returns their number. Only Prune and Retry ever remove a dead letter.
func (q *Queue) Prune(ctx context.Context, queue string, age time.Duration) (n int64, err error) {
	a, err := as[backend.Admin](q, deadWhat)
	if err != nil {
		return 0, err
	}
	return a.Prune(ctx, queue, age)
}

const deadWhat = "dead letters to look at"

// only yields an error and ends.
func only[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

const controlWhat = "orders for workers"

// Pause keeps workers from taking jobs of a queue ("" means every queue), within a second. Jobs
// that run go on. The pause holds for all workers, later ones too, until Resume.
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

// Paused returns the paused queues; "" among them is every queue.
func (q *Queue) Paused(ctx context.Context) ([]string, error) {
	o, err := q.orders(ctx)
	return o.Paused, err
}

// Restart makes every worker that runs now finish what it has and return ErrRestart, within about a
// second. A service manager that starts them again gets the new code.
func (q *Queue) Restart(ctx context.Context) error {
	c, err := as[backend.Control](q, controlWhat)
	if err != nil {
		return err
	}
	return c.Restart(ctx)
}

// Cancel removes a live job, or returns ErrNotFound. If a worker runs the job, the context of its
// handler ends with ErrCancelled within a second or so, and whatever the handler returns changes
// nothing.
func (q *Queue) Cancel(ctx context.Context, id string) error {
	c, err := as[backend.Control](q, "cancellation")
	if err != nil {
		return err
	}
	return c.Cancel(ctx, id)
}

// orders returns the orders in force, none if the store keeps none.
func (q *Queue) orders(ctx context.Context) (backend.Orders, error) {
	if c, ok := q.backend.(backend.Control); ok {
		return c.Orders(ctx)
	}
	return backend.Orders{}, nil
}
