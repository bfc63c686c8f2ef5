package main

import (
	"fmt"
	"io"
	"runtime"
)

// reportQueues writes the table, what stands behind it, and the aims as Markdown.
func reportQueues(w io.Writer, p queuePlan, s *stores, r results) {
	fmt.Fprintf(w, "%s, %s/%s, GOMAXPROCS %d. Medians of %d rounds, which alternate; ± is half the distance of the quartiles. Batches of %d.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), p.rounds, queueBatch)
	fmt.Fprintln(w, "| | setting | push/s, 1 caller | push/s, 8 callers | push/s in batches | worked/s | ± | pick-up p50 ms | p95 ms |")
	fmt.Fprintln(w, "|---|---|--:|--:|--:|--:|--:|--:|--:|")
	for _, c := range queueContenders() {
		if !r.has(c.name) {
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.name, c.setting,
			thousands(r.median(c.name, pushCase, rate)),
			thousands(r.median(c.name, push8Case, rate)),
			thousands(r.median(c.name, pushManyCase, rate)),
			thousands(r.median(c.name, workCase, rate)),
			show("%.0f %%", 100*r.spread(c.name, workCase, rate)),
			show("%.1f", r.median(c.name, pickUpCase, p50)/1000),
			show("%.1f", r.median(c.name, pickUpCase, p95)/1000))
	}
	fmt.Fprintf(w, "\nDurability:\n\n")
	for _, of := range []store{storeSQLite, storePostgres, storeMariaDB, storeRedis} {
		if s.answers(of) {
			fmt.Fprintf(w, "- %s: %s\n", of, s.durability[of])
		}
	}
	fmt.Fprintf(w, "\n## Aims\n\n")
	for _, a := range queueAims() {
		fmt.Fprintln(w, a.line(r))
	}
}

// has reports whether anything of the contender was measured.
func (r results) has(contender string) bool {
	for k := range r.samples {
		if k.contender == contender {
			return true
		}
	}
	return false
}

func queueAims() []aim {
	worked := func(other, name string) func(results) float64 {
		return func(r results) float64 { return r.ratio(name, other, workCase, rate) }
	}
	pickUp := func(name string) func(results) float64 {
		return func(r results) float64 { return r.median(name, pickUpCase, p95) / 1000 }
	}
	return []aim{
		atLeast("SQLite: worked at least 3 of River's on SQLite", "%.2f", 3, worked(nameRiverSQLite, nameQueueSQLite)),
		atLeast("SQLite: worked at least 1.5 of goqite's", "%.2f", 1.5, worked(nameGoqite, nameQueueSQLite)),
		atLeast("PostgreSQL: worked as much as River with its best setting", "%.2f", 1, worked(nameRiverBest, nameQueuePostgres)),
		atLeast("MariaDB: worked at least 5,000/s", "%.0f", 5000, func(r results) float64 { return r.median(nameQueueMariaDB, workCase, rate) }),
		atMost("SQLite: pick-up p95 under 10 ms", "%.1f ms", 10, pickUp(nameQueueSQLite)),
		atMost("PostgreSQL: pick-up p95 under 10 ms", "%.1f ms", 10, pickUp(nameQueuePostgres)),
		// Nothing of the server can be waited for: what is left are the worker's looks, at most 300 ms apart.
		atMost("MariaDB: pick-up p95 within the time between two looks, 300 ms", "%.1f ms", 310, pickUp(nameQueueMariaDB)),
	}
}
