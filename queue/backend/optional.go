package backend

import (
	"context"
	"iter"
	"time"

	"github.com/taskd-go/task/middleware"
)

// A TxPusher is a Backend that can push as a part of the caller's transaction: no worker sees the
// messages before the commit, and a rollback leaves nothing.
type TxPusher interface {
	// PushTx is Push in tx, the value that the store's own push option has put into PushOptions.Tx.
	PushTx(ctx context.Context, tx any, messages []Message) []Pushed
}

// A Waker tells a worker that a queue may have jobs. A Backend or a Consumer that is one wakes the
// workers that use it.
type Waker interface {
	// Wait calls wake with the name of a queue, or "" for any, until ctx ends or it cannot go on.
	// The worker then calls it again after a while.
	Wait(ctx context.Context, wake func(queue string)) error
}

// A Locker is a Backend that can keep what the layers of package middleware hold.
type Locker interface {
	// Locks returns the shared store. What is held there is held for all programs that use the
	// backend.
	Locks() middleware.Store
}

// A Sweeper is a Consumer of a store that does not itself end reservations whose leases have
// lapsed.
type Sweeper interface {
	// Lapsed returns deliveries, of any queue and worker, whose leases have ended, except the kept
	// ones. It changes nothing: package queue completes them with Completion.Lapsed set. full
	// reports that there may be more.
	Lapsed(ctx context.Context, keep []Receipt) (lapsed []Delivery, full bool, err error)
}

// A Tidier is a Consumer of a store in which ended orders or locks stay behind.
type Tidier interface {
	// Tidy removes them. Each worker calls it about once a second, with the orders that it has just
	// read. The store decides when it is worth a look.
	Tidy(ctx context.Context, read Orders) error
}

// A Control is a Backend that keeps orders for all workers.
type Control interface {
	// Orders returns the orders in force. Each worker reads them about once a second.
	Orders(ctx context.Context) (Orders, error)
	// Pause and Resume begin and end a pause of a queue; "" means every queue. Neither fails if
	// there is nothing to change.
	Pause(ctx context.Context, queue string) error
	Resume(ctx context.Context, queue string) error
	// Restart makes Orders.Restart grow.
	Restart(ctx context.Context) error
	// Cancel removes a live job. If a worker has it, its id stays in Orders.Cancelled for some
	// minutes. If there is no such job, Cancel returns ErrNotFound.
	Cancel(ctx context.Context, id string) error
}

// Orders are what workers obey.
type Orders struct {
	Paused    []string // queues from which workers take nothing; "" means every queue
	Restart   int64    // workers that started at a smaller number finish what they have and return
	Cancelled []string // ids of jobs that were taken away from their workers
}

// An Admin is a Backend that can show, count and move its jobs and dead letters. The methods of the
// same names of queue.Queue say what each does. "" as a queue means every queue.
type Admin interface {
	Counts(ctx context.Context, queue string) (Counts, error)
	List(ctx context.Context, queue string) iter.Seq2[JobInfo, error]
	Inspect(ctx context.Context, id string) (Record, error)
	Clear(ctx context.Context, queue string) (n int64, err error)

	Failed(ctx context.Context, f Filter) iter.Seq2[FailedJob, error]
	FailedByID(ctx context.Context, id string) (FailedJob, error)
	CountFailed(ctx context.Context, f Filter) (byClass map[string]int, err error)
	Retry(ctx context.Context, ids ...string) error
	RetryAll(ctx context.Context, f Filter) (n int, err error)
	Prune(ctx context.Context, queue string, age time.Duration) (n int64, err error)
}
