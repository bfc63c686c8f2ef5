package main

import (
	"fmt"
	"math"
)

// An aim is a bound for one figure.
type aim struct {
	words  string
	format string // of the figure
	figure func(results) float64
	least  float64 // the figure is at least this …
	most   float64 // … and at most this
}

func (a aim) line(r results) string {
	x := a.figure(r)
	switch {
	case !measured(x):
		return fmt.Sprintf("- not measured: %s", a.words)
	case x >= a.least && x <= a.most:
		return fmt.Sprintf("- reached: %s: "+a.format, a.words, x)
	default:
		return fmt.Sprintf("- **not reached**: %s: "+a.format, a.words, x)
	}
}

func atLeast(words, format string, least float64, f func(results) float64) aim {
	return aim{words, format, f, least, math.Inf(1)}
}

func atMost(words, format string, most float64, f func(results) float64) aim {
	return aim{words, format, f, math.Inf(-1), most}
}

// Swoole's task workers and EasySwoole's task component are not run here. Their
// rate at 64 callers stands as what it was in terms of net/rpc's, where all
// three ran on one machine: 149,000 and 38,600 calls/s where net/rpc made 127,000.
const (
	swoole     = 149_000.0 / 127_000
	easySwoole = 38_600.0 / 127_000
)

func aims() []aim {
	small := func(callers int) benchCase { return benchCase{kindSync, 64, callers} }
	over := func(other string, c benchCase, f figure) func(results) float64 {
		return func(r results) float64 { return r.ratio(nameOurs, other, c, f) }
	}
	ours := func(c benchCase, f figure) func(results) float64 {
		return func(r results) float64 { return r.median(nameOurs, c, f) }
	}
	list := []aim{
		atMost("1 caller: p50 at most 1.3 of the bare echo's", "%.2f", 1.3, over(nameEcho, small(1), p50)),
		atLeast("1 caller: ahead of every Go peer", "%.2f of the fastest", 1, overPeers(small(1))),
		atLeast("8 callers: at least 0.85 of the bare echo", "%.2f", 0.85, over(nameEcho, small(8), rate)),
		atLeast("8 callers: at least 1.8 of net/rpc", "%.2f", 1.8, over(nameNetRPC, small(8), rate)),
		atLeast("64 callers: at least 1.3 of the bare echo", "%.2f", 1.3, over(nameEcho, small(64), rate)),
		atLeast("64 callers: at least 2.4 of net/rpc", "%.2f", 2.4, over(nameNetRPC, small(64), rate)),
		atLeast("64 callers: at least 2 of Swoole's task workers, by way of net/rpc", "%.2f", 2,
			scaled(over(nameNetRPC, small(64), rate), swoole)),
		atLeast("64 callers: at least 7 of EasySwoole's task component, by way of net/rpc", "%.2f", 7,
			scaled(over(nameNetRPC, small(64), rate), easySwoole)),
		atMost("64 callers: p99 at most half of net/rpc's", "%.2f", 0.5, over(nameNetRPC, small(64), p99)),
	}
	for _, c := range allCases() {
		if c.kind == kindSync && c.size >= 64<<10 {
			list = append(list, atLeast(fmt.Sprintf("%s: at least 0.75 of the bare echo", c.title()), "%.2f", 0.75, over(nameEcho, c, rate)))
		}
	}
	return append(list,
		atLeast("SyncMany: 750,000 tasks/s", "%.0f", 750_000, ours(benchCase{kindSyncMany, 64, 4}, rate)),
		atLeast("AsyncMany: 750,000 tasks/s", "%.0f", 750_000, ours(benchCase{kindAsyncMany, 64, 4}, rate)),
		atMost("a small Sync: at most 4 client allocations besides the caller's own value", "%.0f", 4,
			func(r results) float64 { return math.Round(r.median(nameOurs, small(8), allocs)) - 1 }),
		atMost("choosing among 4 workers: under 60 ns", "%.0f ns", 60, func(results) float64 { return chooseTime(4) }),
		atMost("choosing among 512 workers: under 1,000 ns", "%.0f ns", 1000, func(results) float64 { return chooseTime(512) }),
		atMost("idle: no CPU", "%.2f ms of CPU in a second, all processes", idleLimit, func(r results) float64 { return r.idle }),
	)
}

func scaled(f func(results) float64, by float64) func(results) float64 {
	return func(r results) float64 { return f(r) / by }
}

// overPeers is the pool's rate over that of the fastest peer: a contender that
// is neither a bare echo nor in this process.
func overPeers(c benchCase) func(results) float64 {
	return func(r results) float64 {
		worst := notMeasured
		for _, peer := range contenders() {
			switch peer.name {
			case nameOurs, nameEcho, nameMux, nameAnts:
				continue
			}
			if x := r.ratio(nameOurs, peer.name, c, rate); measured(x) && !(worst <= x) {
				worst = x
			}
		}
		return worst
	}
}
