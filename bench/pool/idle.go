package main

import (
	"errors"
	"time"

	"github.com/taskd-go/task/bench/internal/measure"
)

// idleLimit is in milliseconds of processor time a second: what the runtimes of three idle
// processes do by themselves is below it, a timer that polls is not.
const idleLimit = 3.0

// watchIdle returns the milliseconds of processor time that a pool, workers and parent, takes in a
// second without calls, after one with.
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
	time.Sleep(500 * time.Millisecond) // what the calls have left behind is over by then
	used := measure.ProcessorTime(func() { time.Sleep(time.Second) })
	return used * 1000, pool.close()
}
