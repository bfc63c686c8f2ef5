// Package sqlqueue keeps the jobs of package queue in an SQL database: SQLite, PostgreSQL, MySQL or
// MariaDB, through database/sql and whatever driver the program has. A push is an INSERT, a worker
// reserves rows under leases, and a dead job's row moves to the table of dead letters.
//
//	store, err := sqlqueue.New(db, sqlqueue.PostgreSQL)
//	q := queue.New(store)
//	id, err := q.Push(ctx, SendWelcomeMail{UserID: 7}, sqlqueue.In(tx))
//
// The tables come from [Migrations]; sqlqueue/migrate applies them. docs/tables.md describes them
// for other languages, in which one INSERT of queue and payload pushes a job. The packages
// sqlqueue/sqlite, sqlqueue/postgres and sqlqueue/mysql open a database with the right settings and
// bring its driver.
//
// # What is promised
//
// Each reservation has a token, and every write of a worker carries it: a worker that lost its
// lease changes no row. All times are the database's own, in UTC milliseconds.
//
// # Inside a transaction
//
// The push option [In] pushes as a part of the caller's transaction: no worker sees the job before
// the commit, and a rollback leaves nothing. With SQLite nothing else of the queue may be used
// between a transaction's begin and its end. There is one writing connection, the transaction has
// it, and whatever else writes (a push without In, a worker, Cancel, Retry …) waits until the
// transaction or its own context ends: in the same goroutine that never happens.
//
// # Durability
//
// A push has happened when it returns, and a job is done when its row is gone: what that survives
// is the database's own setting. docs/operations.md says which there are and what this repository's
// programs use.
package sqlqueue
