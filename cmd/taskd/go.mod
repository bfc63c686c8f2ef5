module github.com/taskd-go/task/cmd/taskd

go 1.26.0
