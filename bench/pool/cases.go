package main

import (
	"fmt"
	"io"
	"time"

	"github.com/taskd-go/task/bench/internal/measure"
)

const (
	kindSync      measure.Kind = "sync"      // the payload there and back
	kindAsync     measure.Kind = "async"     // the payload there, an acceptance back
	kindSyncMany  measure.Kind = "syncmany"  // batchSize sync calls in one
	kindAsyncMany measure.Kind = "asyncmany" // batchSize async calls in one
)

const batchSize = 100

func newCase(kind measure.Kind, size, callers int) measure.Case {
	c := measure.Case{Kind: kind, Size: size, Callers: callers}
	if kind == kindSyncMany || kind == kindAsyncMany {
		c.Batch = batchSize
	}
	return c
}

func allCases() []measure.Case {
	var cases []measure.Case
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		for _, callers := range []int{1, 8, 64} {
			cases = append(cases, newCase(kindSync, size, callers))
		}
	}
	for _, callers := range []int{1, 8} {
		cases = append(cases, newCase(kindSync, 1<<20, callers))
	}
	for _, callers := range []int{1, 8, 64} {
		cases = append(cases, newCase(kindAsync, 64, callers))
	}
	return append(cases, newCase(kindSyncMany, 64, 4), newCase(kindAsyncMany, 64, 4))
}

func quickCases() []measure.Case {
	return []measure.Case{
		newCase(kindSync, 64, 1), newCase(kindSync, 64, 8), newCase(kindSync, 64, 64),
		newCase(kindSync, 1<<20, 8),
		newCase(kindAsync, 64, 64), newCase(kindSyncMany, 64, 4), newCase(kindAsyncMany, 64, 4),
	}
}

// A plan says what to measure.
type plan struct {
	cases  []measure.Case
	rounds int
	turn   time.Duration // of one contender in one round
}

// run gives each contender a turn in each round. Each round starts with another contender.
func (p plan) run(selected sessions, progress io.Writer) (measure.Results, error) {
	res := measure.Results{}
	for n, c := range p.cases {
		fmt.Fprintf(progress, "%d/%d %s\n", n+1, len(p.cases), c)
		payload := make([]byte, c.Size)
		for i := range payload {
			payload[i] = byte(i)
		}
		for round := range p.rounds {
			for i := range selected {
				r := selected[(i+round)%len(selected)]
				s, ok, err := measure.Turn(r.caller, c, payload, p.turn)
				if err != nil {
					return res, fmt.Errorf("%s: %s: %w", c, r.name, err)
				}
				if ok {
					res.Add(r.name, c, s)
				}
			}
		}
	}
	return res, nil
}
