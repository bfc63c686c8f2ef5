// Command queue compares the durable queue with its peers. All take turns in one run. It prints a
// table and the aims.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/taskd-go/task/bench/internal/measure"
	"github.com/taskd-go/task/bench/internal/process"
)

func main() {
	if name, ok := process.Served(); ok {
		fatal(fmt.Errorf("%s: %w", name, serve(name)))
	}
	f := measure.ParseFlags()
	if err := measure.Profile(f.CPUProfile, func() error { return run(f, os.Stdout, os.Stderr) }); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// run measures the queues and writes the report.
func run(f measure.Flags, w, progress io.Writer) (err error) {
	ctx := context.Background()
	if f.Rounds < 1 || f.Turn <= 0 {
		return fmt.Errorf("nothing to measure: %d rounds of %v", f.Rounds, f.Turn)
	}
	p := plan{only: f.Cases, rounds: f.Rounds, turn: f.Turn, share: 1, pickUps: 20}
	if f.Quick {
		p = plan{only: f.Cases, rounds: 3, turn: 100 * time.Millisecond, share: 0.2, pickUps: 4}
	}
	places, err := openStores(ctx, progress)
	defer func() { err = errors.Join(err, places.close(ctx)) }()
	if err != nil {
		return err
	}
	selected, err := places.openQueues(ctx, f.Contenders)
	defer func() { err = errors.Join(err, selected.close()) }()
	if err != nil {
		return err
	}
	results, err := p.run(ctx, selected, progress)
	if err != nil {
		return err
	}
	report(w, p, places, results)
	return nil
}
