package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// report writes the tables and the aims as Markdown.
func report(w io.Writer, p plan, r results) {
	fmt.Fprintf(w, "%s, %s/%s, GOMAXPROCS %d. Two processes each. Medians of %d rounds of %v, which alternate; ± is half the distance of the quartiles.\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), p.rounds, p.turn)
	for _, c := range p.cases {
		table(w, c, r)
	}
	fmt.Fprintf(w, "\n## Aims\n\n")
	for _, a := range aims() {
		fmt.Fprintln(w, a.line(r))
	}
}

func table(w io.Writer, c benchCase, r results) {
	fmt.Fprintf(w, "\n## %s\n\n", c.title())
	fmt.Fprintln(w, "| | tasks/s | ± | p50 µs | p99 µs | CPU µs | × bare echo | × net/rpc | client allocations |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, contender := range contenders() {
		name := contender.name
		if len(r.samples[key{name, c}]) == 0 {
			continue
		}
		label := name
		if name == nameOurs {
			label = "**" + name + "**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", label,
			thousands(r.median(name, c, rate)),
			show("%.0f %%", 100*r.spread(name, c, rate)),
			show("%.0f", r.median(name, c, p50)),
			show("%.0f", r.median(name, c, p99)),
			show("%.1f", r.median(name, c, cpu)),
			show("%.2f", r.ratio(name, nameEcho, c, rate)),
			show("%.2f", r.ratio(name, nameNetRPC, c, rate)),
			show("%.1f", r.median(name, c, allocs)))
	}
}

func (c benchCase) title() string {
	what := map[kind]string{
		kindSync:      "Sync",
		kindAsync:     "Async",
		kindSyncMany:  fmt.Sprintf("SyncMany of %d", batchSize),
		kindAsyncMany: fmt.Sprintf("AsyncMany of %d", batchSize),
	}[c.kind]
	return fmt.Sprintf("%s, %s, %s", what, bytesText(c.size), callersText(c.callers))
}

func callersText(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

func show(format string, x float64) string {
	if !measured(x) {
		return "–"
	}
	return fmt.Sprintf(format, x)
}

func thousands(x float64) string {
	s := show("%.0f", x)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}
