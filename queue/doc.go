// Package queue keeps jobs in a database until they are done: SQLite, PostgreSQL, MySQL or MariaDB, through
// database/sql and whatever driver the program has. A push is an INSERT, a worker takes jobs under leases, and what
// cannot be done ends among the dead letters, from where it can be sent again.
//
//	q, err := queue.New(db, queue.PostgreSQL)
//	id, err := q.Push(ctx, SendWelcomeMail{UserID: 7}, queue.Delay(time.Minute))
//
//	reg, err := job.NewRegistry(queue.HandlerFor[SendWelcomeMail]())
//	err = queue.NewWorker(q, reg, queue.Concurrency(10)).Work(ctx, 0)
//
// The tables come from [Migrations]; queue/sqlqueue/migrate applies them. docs/tables.md describes them for other languages,
// in which one INSERT of queue and payload pushes a job.
//
// # What is promised
//
// A job runs at least once. It runs more than once after a crash (of the worker, of the machine, of the database)
// and when a worker was cut off from the database for longer than its lease. Finished jobs are removed in batches of
// at most 100 or every 5 ms, two batches at a time. A kill runs again what was not removed yet: of a worker whose database keeps up
// at most a batch, else at most three, and a job for each slot. Handlers must bear it.
//
// Each reservation has a token, and every write of a worker carries it: who lost his lease changes nothing. Taking
// a job counts an attempt; it is given back when the job was deferred, when the end of its worker interrupted it, and
// when it died in a pool with a process that was stopped for another job's hard limit. All times are the database's
// own, in UTC milliseconds.
//
// # Inside a transaction
//
// PushTx, PushEnvelopeTx and PushManyTx push as a part of the caller's transaction: no worker sees the job before the
// commit, and a rollback leaves nothing. With SQLite these are all that may be used between a transaction's begin and
// its end. There is one writing connection, the transaction has it, and whatever else writes (a Push, a worker, Cancel,
// Retry …) waits until the transaction or its own context ends: in the same goroutine that is for ever.
//
// # Durability
//
// A push has happened when it returns, and a job is done when its row is gone: what that survives is the database's own
// setting. docs/operations.md says which there are and what this repository's programs use.
package queue
