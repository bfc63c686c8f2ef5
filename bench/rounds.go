package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A plan is what a run measures.
type plan struct {
	cases  []benchCase
	rounds int
	turn   time.Duration // of one contender in one round
}

// A sample is what one contender reached in one round.
type sample struct {
	rate     float64 // tasks a second
	p50, p99 float64 // of a call, in microseconds
	p95      float64 // of a pick-up, in microseconds
	cpu      float64 // of all processes for each task, in microseconds
	allocs   float64 // in this process, for each task
}

type key struct {
	contender string
	benchCase benchCase
}

// results has the samples of each contender and case, by round.
type results struct {
	samples map[key][]sample
	idle    float64 // see watchIdle
}

// warmUp is the part of a turn that goes before its measuring.
const warmUp = 0.1

// run gives every contender its turn in each round, starting with another one each time.
func (p plan) run(field sessions, progress io.Writer) (results, error) {
	res := results{samples: map[key][]sample{}, idle: notMeasured}
	for n, c := range p.cases {
		fmt.Fprintf(progress, "%d/%d %s\n", n+1, len(p.cases), c)
		payload := make([]byte, c.size)
		for i := range payload {
			payload[i] = byte(i)
		}
		for round := range p.rounds {
			for i := range field {
				r := field[(i+round)%len(field)]
				s, ok, err := turn(r.session, c, payload, p.turn)
				if err != nil {
					return res, fmt.Errorf("%s: %s: %w", c, r.name, err)
				}
				if ok {
					k := key{r.name, c}
					res.samples[k] = append(res.samples[k], s)
				}
			}
		}
	}
	return res, nil
}

// turn measures one contender; ok is false when it has no such call.
func turn(s session, c benchCase, payload []byte, d time.Duration) (_ sample, ok bool, err error) {
	callers := make([]*caller, c.callers)
	for i := range callers {
		call, err := s.caller(i, c, payload)
		if err != nil {
			return sample{}, false, err
		}
		if call == nil {
			return sample{}, false, nil
		}
		callers[i] = &caller{call: call, latency: newLatency()}
	}
	if _, err := together(callers, time.Duration(float64(d)*warmUp)); err != nil {
		return sample{}, false, err
	}
	for _, c := range callers {
		c.latency.Reset()
	}
	var took time.Duration
	var mallocs uint64
	cpu := processorTime(func() {
		before := countMallocs()
		took, err = together(callers, d)
		mallocs = countMallocs() - before
	})
	if err != nil {
		return sample{}, false, err
	}
	all := newLatency()
	for _, c := range callers {
		all.Merge(c.latency)
	}
	tasks := float64(all.TotalCount()) * float64(c.tasks())
	return sample{
		rate:   tasks / took.Seconds(),
		p50:    float64(all.ValueAtQuantile(50)) * latencyUnit.Seconds() * 1e6,
		p99:    float64(all.ValueAtQuantile(99)) * latencyUnit.Seconds() * 1e6,
		cpu:    cpu * 1e6 / tasks,
		allocs: float64(mallocs) / tasks,
	}, true, nil
}

func countMallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// A caller makes one call after the other.
type caller struct {
	call    func() error
	latency *hdrhistogram.Histogram
}

// Latencies are counted to two digits in a histogram for each caller: keeping
// every one would make the heap grow, and a larger heap is collected less often.
const (
	latencyUnit = 100 * time.Nanosecond
	maxLatency  = 10 * time.Second
)

func newLatency() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(maxLatency/latencyUnit), 2)
}

// together lets all callers call for d, and returns how long it took.
func together(callers []*caller, d time.Duration) (time.Duration, error) {
	errs := make([]error, len(callers))
	var wg sync.WaitGroup
	begin := make(chan struct{})
	var start time.Time
	for i, c := range callers {
		wg.Go(func() {
			<-begin
			errs[i] = c.repeat(start, d)
		})
	}
	start = time.Now()
	close(begin)
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}

// repeat reads the clock once a call: the end of one is the start of the next.
func (c *caller) repeat(start time.Time, d time.Duration) error {
	for last := time.Since(start); last < d; {
		if err := c.call(); err != nil {
			return err
		}
		now := time.Since(start)
		// A call of more than maxLatency fails by its own deadline or the run is worth nothing.
		_ = c.latency.RecordValue(int64((now - last) / latencyUnit))
		last = now
	}
	return nil
}
