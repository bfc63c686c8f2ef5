package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A tally collects the answers of all callers. add is safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	answers []answer
}

func (t *tally) add(answers []answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers = append(t.answers, answers...)
}

// counts are the numbers of calls with one verdict, and of those that ran.
type counts struct{ all, ran int }

// report prints the answers by verdict, and compares each with its marker. Call it after the pool
// has ended, so that nothing runs later.
func (t *tally) report(c *chaos) {
	sums := make(map[verdict]*counts)
	for _, a := range t.answers {
		if sums[a.verdict] == nil {
			sums[a.verdict] = new(counts)
		}
		sums[a.verdict].all++
		if c.markers.ran(a.id) {
			sums[a.verdict].ran++
		}
	}
	verdicts := slices.SortedFunc(maps.Keys(sums), func(a, b verdict) int {
		return cmp.Or(cmp.Compare(b.status, a.status), cmp.Compare(a.claim, b.claim), cmp.Compare(text(a), text(b)))
	})
	fmt.Fprintf(c.out, "calls: %d\n", len(t.answers))
	lost, neverRan := 0, 0
	for _, v := range verdicts {
		s := sums[v]
		fmt.Fprintf(c.out, "  status %2d, %-26s %9d, of which %d had run\n", v.status, text(v), s.all, s.ran)
		if v.lost() {
			lost += s.all
		}
		switch {
		case v.claim == notRun && s.ran > 0:
			c.problem("%d calls with status %d were answered \"not run\", and had run", s.ran, v.status)
		case v.claim == ran && s.ran < s.all:
			c.problem("%d calls with status %d were answered \"ran\", and had not run", s.all-s.ran, v.status)
		case v.claim == mayHaveRun && v.lost():
			neverRan += s.all - s.ran
		}
	}
	fmt.Fprintf(c.out, "lost with their worker: %d calls, of which %d (%.1f %%) were answered \"may have run\" "+
		"and never ran; target: under 2 %%\n",
		lost, neverRan, 100*float64(neverRan)/float64(max(lost, 1)))
}

// text returns a verdict in words.
func text(v verdict) string {
	switch {
	case v.late:
		return v.claim.String() + ", time up"
	case v.lost():
		return v.claim.String() + ", worker lost"
	default:
		return v.claim.String()
	}
}
