// Package sqlqueue keeps the jobs of package queue in an SQL database: SQLite, PostgreSQL, MySQL or
// MariaDB, through database/sql and the program's driver. A push is an INSERT, a worker reserves
// rows under leases, and the row of a dead job moves to the table of dead letters.
//
//	store, err := sqlqueue.New(db, sqlqueue.PostgreSQL)
//	q := queue.New(store)
//	id, err := q.Push(ctx, SendWelcomeMail{UserID: 7}, sqlqueue.In(tx))
//
// [Migrations] has the SQL of the tables, and sqlqueue/migrate applies it. docs/tables.md describes
// the tables for programs in other languages, which push a job with one INSERT of queue and
// payload. The packages sqlqueue/sqlite, sqlqueue/postgres and sqlqueue/mysql open a database with
// the right settings and import its driver.
//
// # What is promised
//
// Each reservation has a token, and every write of a worker to a job has the token as a condition:
// a worker that lost its lease changes no row. All times are by the database's clock, in UTC
// milliseconds.
//
// # Inside a transaction
//
// The push option [In] makes a push a part of the caller's transaction: no worker sees the job
// before the commit, and a rollback leaves nothing. With SQLite, use nothing else of the queue
// between the begin and the end of the transaction. The transaction has the only connection that
// writes. So every other write (a push without In, a worker, Cancel, Retry …) waits until the
// transaction or the write's own context ends. In the goroutine that has to end the transaction,
// such a write is a deadlock.
//
// # Durability
//
// A push is committed when it returns, and a job is done when the removal of its row is committed.
// The settings of the database decide which crashes a commit survives. docs/operations.md describes
// them, and says what taskd and the packages of this repository use.
package sqlqueue
