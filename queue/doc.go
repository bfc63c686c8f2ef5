// Package queue keeps jobs in a store until they are done. A push stores a job, a worker takes jobs
// under leases, and what cannot be done ends among the dead letters, from where it can be sent
// again.
//
//	q := queue.New(store)
//	id, err := q.Push(ctx, SendWelcomeMail{UserID: 7}, queue.Delay(time.Minute))
//
//	reg, err := job.NewRegistry(queue.HandlerFor[SendWelcomeMail]())
//	err = queue.NewWorker(q, reg, queue.Concurrency(10)).Work(ctx, 0)
//
// The examples of package queue/sqlqueue/sqlite show each feature over a database: a push in a
// transaction, unique keys, delay and priority, layers, dead letters and their replay, pause,
// parking and cancelling. They stand there because this module imports no driver.
//
// The store is a backend.Backend: sqlqueue.New makes one of an SQL database, and [NewSync] needs
// none. What a store cannot do fails with an error that wraps [ErrUnsupported] and names the store.
//
// # What is promised
//
// A job runs at least once. It runs more than once after a crash (of the worker, of the machine, of
// the store) and when a worker was cut off from the store for longer than its lease. Finished jobs
// are removed in batches of at most 100 or every 5 ms, two batches at a time. A kill runs again
// what was not removed yet: of a worker whose store keeps up at most a batch, else at most three,
// and a job for each slot. Handlers must bear it.
//
// Taking a job counts an attempt; it is given back when the job was deferred, when the end of its
// worker interrupted it, and when it died in a pool with a process that was stopped for another
// job's hard limit. A worker that lost its lease changes nothing of the job. All times are the
// store's own.
package queue
