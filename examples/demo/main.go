// Command demo is the first minute with a pool of worker processes: it hashes the files of a folder
// in three of them. With -kill it kills one on the way and shows what its callers learn.
//
//	go run ./examples/demo
//	go run ./examples/demo -kill /usr/share/doc
//	go run ./examples/demo -help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/taskd-go/task"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	d := &demo{out: os.Stdout, dir: ".", workers: 3}
	switch err := d.parse(os.Args[1:], os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		os.Exit(exitUsage)
	}
	// A worker process runs main too. It becomes a worker here and goes no further.
	task.RunIfWorker(d.config())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := d.run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted")
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitFailed)
	}
}

// parse reads the command line. It has reported the error that it returns.
func (d *demo) parse(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "Usage: go run ./examples/demo [flags] [DIR]\n\n"+
			"Hashes each regular file under DIR (default: this folder) in a worker process.\n"+
			"Symbolic links and .git are left out.\n\n")
		flags.PrintDefaults()
	}
	flags.BoolVar(&d.kill, "kill", false, "kill a worker on the way")
	flags.BoolVar(&d.list, "list", false, "print each file's SHA-256 too, as sha256sum does")
	flags.IntVar(&d.workers, "workers", d.workers, "worker processes, 1 to 512")
	err := flags.Parse(args)
	switch {
	case err != nil:
		return err
	case d.workers < 1 || d.workers > task.MaxWorkerNum:
		err = fmt.Errorf("-workers is %d: it must be from 1 to %d", d.workers, task.MaxWorkerNum)
	case flags.NArg() > 1:
		err = errors.New("demo takes one folder")
	case flags.NArg() == 1:
		d.dir = flags.Arg(0)
	}
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
	}
	return err
}

// config describes the pool. TempDir comes later: the parent alone needs it.
func (d *demo) config() task.Config {
	return task.Config{
		ServerName:    "demo",
		WorkerNum:     d.workers,
		MaxRunningNum: 2, // hashing keeps a CPU busy: more at once would not be faster
		OnEvent:       d.onEvent,
		Logger:        slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
}
