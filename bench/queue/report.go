package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/taskd-go/task/bench/internal/measure"
)

// report writes the table, the durability of the stores and the aims as Markdown.
func report(w io.Writer, p plan, s *stores, r measure.Results) {
	fmt.Fprintf(w, "%s, %s/%s, GOMAXPROCS %d. Medians of %d rounds, in which the queues take turns;\n"+
		"± is half the interquartile range. Batches of %d.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), p.rounds, batchSize)
	fmt.Fprintln(w, "| | setting | push/s, 1 caller | push/s, 8 callers | push/s in batches | "+
		"worked/s | ± | pick-up p50 ms | p95 ms |")
	fmt.Fprintln(w, "|---|---|--:|--:|--:|--:|--:|--:|--:|")
	for _, c := range contenders() {
		if !r.Has(c.name) {
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.name, c.setting,
			measure.Thousands(r.Median(c.name, pushCase, measure.Rate)),
			measure.Thousands(r.Median(c.name, push8Case, measure.Rate)),
			measure.Thousands(r.Median(c.name, pushManyCase, measure.Rate)),
			measure.Thousands(r.Median(c.name, workCase, measure.Rate)),
			measure.Show("%.0f %%", 100*r.Spread(c.name, workCase, measure.Rate)),
			measure.Show("%.1f", r.Median(c.name, pickUpCase, measure.P50)/1000),
			measure.Show("%.1f", r.Median(c.name, pickUpCase, measure.P95)/1000))
	}
	fmt.Fprintf(w, "\nDurability:\n\n")
	for _, of := range []store{storeSQLite, storePostgres, storeMariaDB, storeRedis} {
		if s.answers(of) {
			fmt.Fprintf(w, "- %s: %s\n", of, s.durability[of])
		}
	}
	fmt.Fprintf(w, "\n## Aims\n\n")
	for _, a := range aims() {
		fmt.Fprintln(w, a.Line(r))
	}
}

func aims() []measure.Aim {
	worked := func(other, name string) func(measure.Results) float64 {
		return func(r measure.Results) float64 { return r.Ratio(name, other, workCase, measure.Rate) }
	}
	pickUp := func(name string) func(measure.Results) float64 {
		return func(r measure.Results) float64 { return r.Median(name, pickUpCase, measure.P95) / 1000 }
	}
	return []measure.Aim{
		measure.AtLeast("SQLite: worked at least 3 of River's on SQLite", "%.2f", 3, worked(nameRiverSQLite,
			nameQueueSQLite)),
		measure.AtLeast("SQLite: worked at least 1.5 of goqite's", "%.2f", 1.5, worked(nameGoqite, nameQueueSQLite)),
		measure.AtLeast("PostgreSQL: worked as much as River with its best setting", "%.2f", 1, worked(nameRiverBest,
			nameQueuePostgres)),
		measure.AtLeast("MariaDB: worked at least 5,000/s", "%.0f", 5000,
			func(r measure.Results) float64 { return r.Median(nameQueueMariaDB, workCase, measure.Rate) }),
		measure.AtMost("SQLite: pick-up p95 under 10 ms", "%.1f ms", 10, pickUp(nameQueueSQLite)),
		measure.AtMost("PostgreSQL: pick-up p95 under 10 ms", "%.1f ms", 10, pickUp(nameQueuePostgres)),
		// MariaDB cannot notify a worker, which therefore polls at intervals of at most 300 ms.
		measure.AtMost("MariaDB: pick-up p95 within the poll interval, 300 ms", "%.1f ms", 310,
			pickUp(nameQueueMariaDB)),
	}
}
