package measure

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Sample is what one contender reached in one round.
type Sample struct {
	Rate     float64 // tasks a second
	P50, P99 float64 // of a call, in microseconds
	P95      float64 // of a pick-up, in microseconds
	CPU      float64 // of all processes for each task, in microseconds
	Allocs   float64 // in this process, for each task
}

// Calls makes the call that caller number i repeats; a nil call: the contender has none of that
// kind. Calls of different callers run at the same time.
type Calls func(i int, c Case, payload []byte) (call func() error, err error)

// warmUp is the part of a turn that goes before its measuring.
const warmUp = 0.1

// Turn measures one contender for d; ok is false when it has no such call.
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

// A caller makes one call after the other.
type caller struct {
	call    func() error
	latency *hdrhistogram.Histogram
}

// Latencies are counted to two digits in a histogram for each caller: keeping every one would make
// the heap grow, and a larger heap is collected less often.
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
