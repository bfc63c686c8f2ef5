package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/taskd-go/task/bench/internal/measure"
)

// report writes the tables and the aims as Markdown.
func report(w io.Writer, p plan, r measure.Results, idle float64) {
	fmt.Fprintf(w, "%s, %s/%s, GOMAXPROCS %d. Two processes each. "+
		"Medians of %d rounds, with turns of %v;\n± is half the interquartile range.\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), p.rounds, p.turn)
	for _, c := range p.cases {
		table(w, c, r)
	}
	fmt.Fprintf(w, "\n## Aims\n\n")
	for _, a := range aims(idle) {
		fmt.Fprintln(w, a.Line(r))
	}
}

func table(w io.Writer, c measure.Case, r measure.Results) {
	fmt.Fprintf(w, "\n## %s\n\n", title(c))
	fmt.Fprintln(w, "| | tasks/s | ± | p50 µs | p99 µs | CPU µs | × bare echo | × net/rpc | client allocations |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, contender := range contenders() {
		name := contender.name
		if !r.HasCase(name, c) {
			continue
		}
		label := name
		if name == nameOurs {
			label = "**" + name + "**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", label,
			measure.Thousands(r.Median(name, c, measure.Rate)),
			measure.Show("%.0f %%", 100*r.Spread(name, c, measure.Rate)),
			measure.Show("%.0f", r.Median(name, c, measure.P50)),
			measure.Show("%.0f", r.Median(name, c, measure.P99)),
			measure.Show("%.1f", r.Median(name, c, measure.CPU)),
			measure.Show("%.2f", r.Ratio(name, nameEcho, c, measure.Rate)),
			measure.Show("%.2f", r.Ratio(name, nameNetRPC, c, measure.Rate)),
			measure.Show("%.1f", r.Median(name, c, measure.Allocs)))
	}
}

func title(c measure.Case) string {
	what := map[measure.Kind]string{
		kindSync:      "Sync",
		kindAsync:     "Async",
		kindSyncMany:  fmt.Sprintf("SyncMany of %d", batchSize),
		kindAsyncMany: fmt.Sprintf("AsyncMany of %d", batchSize),
	}[c.Kind]
	return fmt.Sprintf("%s, %s, %s", what, measure.BytesText(c.Size), callersText(c.Callers))
}

func callersText(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}
