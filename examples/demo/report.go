package main

import (
	"fmt"
	"time"
)

// report says what happened to the files, the killed worker and the pool.
func (d *demo) report(took time.Duration, killed *killing, skipped []error) {
	if killed != nil {
		d.reportKill(killed)
	}
	for _, err := range append(skipped, d.failed...) {
		fmt.Fprintf(d.out, "failed: %v\n", err)
	}
	fmt.Fprintln(d.out, "The pool's status, a row for each worker:")
	fmt.Fprintln(d.out, "  worker      pid  accepted  success  fail  lost  restarts")
	for _, r := range d.pool.Status() {
		fmt.Fprintf(d.out, "  %6d  %7d  %8d  %7d  %4d  %4d  %8d\n",
			r.Index, r.PID, r.Accepted, r.Success, r.Fail, r.Lost, r.Restarts)
	}
	fmt.Fprintf(d.out, "%s, %d lines, %s, compressed %s, in %s\n", plural(d.files, "file"),
		d.total.Lines, bytesText(d.total.Bytes), bytesText(d.total.Compressed), milliseconds(took))
}

// reportKill says which calls were lost with the worker and how their callers learned it.
func (d *demo) reportKill(k *killing) {
	if k.err != nil {
		fmt.Fprintf(d.out, "kill: %v\n", k.err)
		return
	}
	fmt.Fprintf(d.out, "Worker %d (pid %d) was killed with SIGKILL; its successor (pid %d) accepted after %s.\n",
		k.old.Index, k.old.PID, k.successor.PID, milliseconds(k.took))
	if len(d.lost) == 0 {
		fmt.Fprintln(d.out, "No call was lost: it had just finished its tasks.")
		return
	}
	fmt.Fprintf(d.out, "%s lost. A lost call returns at once, with a *task.Error:\n",
		plural(len(d.lost), "call was", "calls were"))
	for _, l := range d.lost {
		fmt.Fprintf(d.out, "  %s\n    Status:   %d (%s)\n    Delivery: %s\n    Message:  %s\n",
			l.path, int(l.err.Status), l.err.Status.Message(), l.err.Delivery, l.err.Message)
	}
	fmt.Fprintln(d.out, "Delivery says whether the task ran. The demo sent these files again: a digest changes\n"+
		"nothing, so that is safe even where it may have run.")
}

// readOn says what to do next.
func (d *demo) readOn() {
	if !d.kill {
		fmt.Fprintln(d.out, "Next: go run ./examples/demo -kill, which kills a worker on the way")
	}
	fmt.Fprintln(d.out, "Read on: README.md; the first program is examples/embed; docs/errors.md lists the failures")
}

// plural says how many there are. Without many, the plural of one has an s.
func plural(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	default:
		return fmt.Sprintf("%d %ss", n, one)
	}
}

func milliseconds(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// bytesText shows a size in the largest unit that it fills.
func bytesText(n int64) string {
	for shift, unit := range []string{"GiB", "MiB", "KiB"} {
		if size := int64(1) << (30 - 10*shift); n >= size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(size), unit)
		}
	}
	return plural(int(n), "byte")
}
