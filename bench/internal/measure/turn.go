package measure

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Sample has the figures of one contender in one round.
type Sample struct {
	Rate     float64 // tasks a second
	P50, P99 float64 // of a call, in microseconds
	P95      float64 // of a pick-up, in microseconds
	CPU      float64 // processor time of all processes for each task, in microseconds
	Allocs   float64 // allocations in this process for each task
}

// Calls returns the call that caller i repeats, or nil if the contender has no such call. Calls of
// different callers run at the same time.
type Calls func(i int, c Case, payload []byte) (call func() error, err error)

// warmUp is the length of the warm-up before a turn, relative to the turn.
const warmUp = 0.1

// Turn measures one contender for d. ok is false if the contender has no such call.
func Turn(calls Calls, c Case, payload []byte, d time.Duration) (_ Sample, ok bool, err error) {
	callers := make([]*caller, c.Callers)
	for i := range callers {
		call, err := calls(i, c, payload)
		if err != nil {
			return Sample{}, false, err
		}
		if call == nil {
			return Sample{}, false, nil
		}
		callers[i] = &caller{call: call, latency: newLatency()}
	}
	if _, err := together(callers, time.Duration(float64(d)*warmUp)); err != nil {
		return Sample{}, false, err
	}
	for _, c := range callers {
		c.latency.Reset()
	}
	var took time.Duration
	var mallocs uint64
	cpu := ProcessorTime(func() {
		before := countMallocs()
		took, err = together(callers, d)
		mallocs = countMallocs() - before
	})
	if err != nil {
		return Sample{}, false, err
	}
	all := newLatency()
	for _, c := range callers {
		all.Merge(c.latency)
	}
	tasks := float64(all.TotalCount()) * float64(c.Tasks())
	return Sample{
		Rate:   tasks / took.Seconds(),
		P50:    float64(all.ValueAtQuantile(50)) * latencyUnit.Seconds() * 1e6,
		P99:    float64(all.ValueAtQuantile(99)) * latencyUnit.Seconds() * 1e6,
		CPU:    cpu * 1e6 / tasks,
		Allocs: float64(mallocs) / tasks,
	}, true, nil
}

func countMallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// A caller makes one call after another.
type caller struct {
	call    func() error
	latency *hdrhistogram.Histogram
}

// Each caller counts latencies to two digits in a histogram. A list of them would grow the heap,
// which the garbage collector would then visit less often.
const (
	latencyUnit = 100 * time.Nanosecond
	maxLatency  = 10 * time.Second
)

func newLatency() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(maxLatency/latencyUnit), 2)
}

// together runs all callers for d, and returns how long that took.
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

// repeat makes calls for d. It reads the clock once for each: the end of one call is the start of
// the next.
func (c *caller) repeat(start time.Time, d time.Duration) error {
	for last := time.Since(start); last < d; {
		if err := c.call(); err != nil {
			return err
		}
		now := time.Since(start)
		// A call that exceeds maxLatency spoils the run anyway.
		_ = c.latency.RecordValue(int64((now - last) / latencyUnit))
		last = now
	}
	return nil
}
