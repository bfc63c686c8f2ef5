module github.com/taskd-go/task/queue/sqlqueue/mysql

go 1.26.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/taskd-go/task v0.0.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
