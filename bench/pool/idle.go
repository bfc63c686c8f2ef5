package main

import (
	"errors"
	"time"

	"github.com/taskd-go/task/bench/internal/measure"
)

// idleLimit is the limit for an idle pool, in milliseconds of processor time a second. The runtimes
// of three idle processes stay below it. A timer that polls does not.
const idleLimit = 3.0

// watchIdle returns the processor time that parent and workers of a pool take in a second without
// calls, in milliseconds.
func watchIdle() (float64, error) {
	pool, err := openPool(nil)
	if err != nil {
		return measure.NotMeasured, err
	}
	payload := make([]byte, 64)
	if _, _, err := measure.Turn(pool.caller, newCase(kindSync, len(payload), 8), payload,
		100*time.Millisecond); err != nil {
		return measure.NotMeasured, errors.Join(err, pool.close())
	}
	time.Sleep(500 * time.Millisecond) // until the work after the calls is done
	used := measure.ProcessorTime(func() { time.Sleep(time.Second) })
	return used * 1000, pool.close()
}
