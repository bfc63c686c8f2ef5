// Command taskd runs a pool of task workers and talks to it. "taskd --help" explains it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/queue/sqlqueue"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	c := newCommand()
	c.root.SetArgs(args)
	c.root.SetOut(stdout)
	c.root.SetErr(stderr)
	refuseUnknownShells(c.root)
	cmd, err := c.root.ExecuteC()
	if err == nil {
		return cli.ExitOK
	}
	code := cli.ExitCode(err)
	if !c.started {
		code = cli.ExitUsage
	}
	var config *task.ConfigError
	if errors.As(err, &config) {
		err = c.settings.Explain(cmd.Flags(), config)
	}
	fmt.Fprintf(stderr, "taskd: %v\n", err)
	var own *cli.Error
	if errors.As(err, &own) && own.Advice != "" {
		fmt.Fprintln(stderr, own.Advice)
	}
	if errors.Is(err, sqlqueue.ErrSchema) { // although every command migrates
		fmt.Fprintln(stderr, "A table prefix has one set of tables: "+
			"give --jobs-table and --failed-table as at its first use, or another --table-prefix.")
	}
	return code
}
