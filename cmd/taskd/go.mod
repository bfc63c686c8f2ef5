module github.com/taskd-go/task/cmd/taskd

go 1.26.0

require (
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.10
	github.com/stretchr/testify v1.12.1
	github.com/taskd-go/task v0.0.0
	golang.org/x/term v0.48.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/taskd-go/task/queue/migrate v0.0.0
	github.com/taskd-go/task/queue/mysql v0.0.0
	github.com/taskd-go/task/queue/postgres v0.0.0
	github.com/taskd-go/task/queue/sqlite v0.0.0
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
