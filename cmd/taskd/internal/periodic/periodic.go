// Package periodic calls a function at a fixed interval.
package periodic

import (
	"sync"
	"time"
)

// Call calls fn once in each period, in its own goroutine, until fn returns false or until stop.
// stop waits for the goroutine; call it once.
func Call(period time.Duration, fn func() (more bool)) (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				if !fn() {
					return
				}
			}
		}
	})
	return func() {
		close(end)
		running.Wait()
	}
}
