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
// The tables come from [Migrations]; queue/migrate applies them. docs/tables.md describes them for other languages,
// in which one INSERT of queue and payload pushes a job.
//
// # What is promised
//
// A job runs at least once. It runs more than once after a crash (of the worker, of the machine, of the database)
// and when a worker was cut off from the database for longer than its lease. Finished jobs are removed in batches of
// at most 100 or every 5 ms, so a kill runs at most that many of them again. Handlers must bear it.
//
// Each reservation has a token, and every write of a worker carries it: who lost his lease changes nothing. Taking
// a job counts an attempt; it is given back when the job was deferred, when the end of its worker interrupted it, and
// when it died in a pool with a process that was stopped for another job's hard limit. All times are the database's
// own, in UTC milliseconds.
//
// # Inside a transaction
//
// Only the Tx forms may be used between a transaction's begin and its end. With SQLite there is one writing
// connection, and a Push beside an open transaction would wait for it for ever.
package queue
