// Command chaos puts a pool or a queue under stress and checks what becomes of it.
package main

import (
	"os"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/chaos/internal/pool"
	"github.com/taskd-go/task/chaos/internal/queue"
	"github.com/taskd-go/task/chaos/internal/rundir"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr,
		pool.NewCommand(), queue.NewCommand(), queue.NewWorkerCommand(), rundir.NewGuardCommand()))
}
