// Package queue keeps jobs in a store until they are done. A push stores a job, a worker reserves
// jobs under leases and runs them, and a job that cannot be done becomes a dead letter, which can
// be retried.
//
//	q := queue.New(store)
//	id, err := q.Push(ctx, SendWelcomeMail{UserID: 7}, queue.Delay(time.Minute))
//
//	reg, err := job.NewRegistry(queue.HandlerFor[SendWelcomeMail]())
//	err = queue.NewWorker(q, reg, queue.Concurrency(10)).Work(ctx, 0)
//
// The examples of package queue/sqlqueue/sqlite show each feature over a database: a push in a
// transaction, unique keys, delay and priority, layers, dead letters and their replay, pause,
// parking and cancelling. They are there because this module imports no driver.
//
// The store is a backend.Backend, such as sqlqueue.New returns for an SQL database. A queue of
// [NewSync] needs none. A call that needs what the store cannot do fails with an error that wraps
// [ErrUnsupported] and names the store.
//
// # What is promised
//
// A job runs at least once. It runs again after a crash of its worker, its machine or its store,
// and when its worker could not reach the store for longer than the lease. Handlers must be
// idempotent. A worker removes finished jobs in batches, after 5 ms or when there are 100. After a
// kill the jobs that were running run again, and those that had finished but were not removed yet:
// at most 100 if the store keeps up with the worker, else more.
//
// Each reservation of a job counts an attempt. The attempt does not count if the job was deferred,
// if the end of its worker interrupted it, or if it ran in a pool and its process was stopped for
// another job's hard limit. A worker that lost its lease on a job does not change the job. All
// times are by the store's clock.
package queue
