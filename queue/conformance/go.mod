module github.com/taskd-go/task/queue/conformance

go 1.26.0

require (
	github.com/taskd-go/task v0.0.0
	github.com/taskd-go/task/queue/migrate v0.0.0
	github.com/taskd-go/task/queue/mysql v0.0.0
	github.com/taskd-go/task/queue/postgres v0.0.0
	github.com/taskd-go/task/queue/sqlite v0.0.0
)
