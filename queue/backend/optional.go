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

// A Waker notifies workers that a queue may have jobs, so that they look before their Poll interval
// ends. A Backend that is a Waker wakes the workers that use it, a Consumer its own worker.
type Waker interface {
	// Wait calls wake with the name of a queue that may have new jobs, or with "" if it does not
	// know which. It calls wake once it listens, for pushes that came before. It returns when ctx
	// ends or with an error if it cannot go on; then the worker calls Wait again, after 1 to 30 s.
	Wait(ctx context.Context, wake func(queue string)) error
}

// A Locker is a Backend that can store the leases and counts of the layers of package middleware.
type Locker interface {
	// Locks returns the middleware.Store. All programs that use the store share it. Package
	// middleware/storetest tests it.
	Locks() middleware.Store
}

// A Sweeper is a Consumer of a store that does not itself end reservations whose leases have
// lapsed. A Consumer that is no Sweeper delivers the messages of dead workers again by itself, and
// counts in Delivery.Crashes how often.
type Sweeper interface {
	// Lapsed returns deliveries of any queue and worker whose leases have ended, except those of
	// keep, which may be receipts of other Consumers of the same worker. It changes nothing:
	// package queue passes the deliveries to Complete, with Completion.Lapsed set. Each has a
	// Receipt for that. full reports that there may be more.
	Lapsed(ctx context.Context, keep []Receipt) (lapsed []Delivery, full bool, err error)
}

// A Tidier is a Consumer of a store in which ended orders or locks stay until they are removed.
type Tidier interface {
	// Tidy removes ended orders and locks. Each worker calls it about once a second, with the
	// orders that it has just read. The store may do nothing in most calls.
	Tidy(ctx context.Context, read Orders) error
}

// A Control is a Backend that stores orders to all workers.
type Control interface {
	// Orders returns the orders in force. Each worker reads them about once a second.
	Orders(ctx context.Context) (Orders, error)
	// Pause and Resume begin and end the pause of a queue; "" means every queue. Neither fails if
	// the queue is in that state already.
	Pause(ctx context.Context, queue string) error
	Resume(ctx context.Context, queue string) error
	// Restart increases Orders.Restart.
	Restart(ctx context.Context) error
	// Cancel removes a live job, or returns ErrNotFound. If a worker has the job, its id stays in
	// Orders.Cancelled for some minutes, and Extend and Complete return ErrLost for its delivery.
	Cancel(ctx context.Context, id string) error
}

// Orders say what workers must do.
type Orders struct {
	Paused    []string // queues from which workers take nothing; "" means every queue
	Restart   int64    // a worker that read a smaller number when it started finishes its jobs and returns
	Cancelled []string // ids of jobs that were cancelled while a worker had them
}

// An Admin is a Backend that can show, count and change its jobs and dead letters. The methods of
// the same names of queue.Queue document what each does. "" as a queue means every queue.
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
