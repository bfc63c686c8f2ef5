package main

import (
	"fmt"
	"math"

	"github.com/taskd-go/task/bench/internal/measure"
)

// Swoole's task workers and EasySwoole's task component do not run here. Their rates are given
// relative to net/rpc, as measured at 64 callers on one machine: 149,000 and 38,600 calls/s, with
// net/rpc at 127,000.
const (
	swoole     = 149_000.0 / 127_000
	easySwoole = 38_600.0 / 127_000
)

// aims returns the aims. idle is the result of watchIdle.
func aims(idle float64) []measure.Aim {
	small := func(callers int) measure.Case { return newCase(kindSync, 64, callers) }
	over := func(other string, c measure.Case, f measure.Figure) func(measure.Results) float64 {
		return func(r measure.Results) float64 { return r.Ratio(nameOurs, other, c, f) }
	}
	ours := func(c measure.Case, f measure.Figure) func(measure.Results) float64 {
		return func(r measure.Results) float64 { return r.Median(nameOurs, c, f) }
	}
	list := []measure.Aim{
		measure.AtMost("1 caller: p50 at most 1.3 of the bare echo's", "%.2f", 1.3, over(nameEcho, small(1), measure.P50)),
		measure.AtLeast("1 caller: ahead of every Go peer", "%.2f of the fastest", 1, overPeers(small(1))),
		measure.AtLeast("8 callers: at least 0.85 of the bare echo", "%.2f", 0.85, over(nameEcho, small(8), measure.Rate)),
		measure.AtLeast("8 callers: at least 1.8 of net/rpc", "%.2f", 1.8, over(nameNetRPC, small(8), measure.Rate)),
		measure.AtLeast("64 callers: at least 1.3 of the bare echo", "%.2f", 1.3, over(nameEcho, small(64), measure.Rate)),
		measure.AtLeast("64 callers: at least 2.4 of net/rpc", "%.2f", 2.4, over(nameNetRPC, small(64), measure.Rate)),
		measure.AtLeast("64 callers: at least 2 of Swoole's task workers, by way of net/rpc", "%.2f", 2,
			scaled(over(nameNetRPC, small(64), measure.Rate), swoole)),
		measure.AtLeast("64 callers: at least 7 of EasySwoole's task component, by way of net/rpc", "%.2f", 7,
			scaled(over(nameNetRPC, small(64), measure.Rate), easySwoole)),
		measure.AtMost("64 callers: p99 at most half of net/rpc's", "%.2f", 0.5, over(nameNetRPC, small(64), measure.P99)),
	}
	for _, c := range allCases() {
		if c.Kind == kindSync && c.Size >= 64<<10 {
			list = append(list, measure.AtLeast(fmt.Sprintf("%s: at least 0.75 of the bare echo", title(c)), "%.2f",
				0.75, over(nameEcho, c, measure.Rate)))
		}
	}
	return append(list,
		measure.AtLeast("SyncMany: at least 750,000 tasks/s", "%.0f", 750_000,
			ours(newCase(kindSyncMany, 64, 4), measure.Rate)),
		measure.AtLeast("AsyncMany: at least 750,000 tasks/s", "%.0f", 750_000,
			ours(newCase(kindAsyncMany, 64, 4), measure.Rate)),
		measure.AtMost("a small Sync: at most 4 client allocations besides the caller's own value", "%.0f", 4,
			func(r measure.Results) float64 { return math.Round(r.Median(nameOurs, small(8), measure.Allocs)) - 1 }),
		measure.AtMost("choosing among 4 workers: under 60 ns", "%.0f ns", 60,
			func(measure.Results) float64 { return chooseTime(4) }),
		measure.AtMost("choosing among 512 workers: under 1,000 ns", "%.0f ns", 1000,
			func(measure.Results) float64 { return chooseTime(512) }),
		measure.AtMost("idle: at most 3 ms of CPU in a second, all processes", "%.2f ms", idleLimit,
			func(measure.Results) float64 { return idle }),
	)
}

func scaled(f func(measure.Results) float64, by float64) func(measure.Results) float64 {
	return func(r measure.Results) float64 { return f(r) / by }
}

// overPeers returns the rate of the pool relative to the fastest peer. Bare echoes and contenders
// within this process are no peers.
func overPeers(c measure.Case) func(measure.Results) float64 {
	return func(r measure.Results) float64 {
		worst := measure.NotMeasured
		for _, peer := range contenders() {
			switch peer.name {
			case nameOurs, nameEcho, nameMux, nameAnts:
				continue
			}
			if x := r.Ratio(nameOurs, peer.name, c, measure.Rate); measure.Measured(x) && !(worst <= x) {
				worst = x
			}
		}
		return worst
	}
}
