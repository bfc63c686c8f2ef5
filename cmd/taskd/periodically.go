package main

import (
	"sync"
	"time"
)

// periodically calls fn once in each period, in a goroutine of its own, until it returns false or until stop, which
// waits for it. stop is called once.
func periodically(period time.Duration, fn func() (more bool)) (stop func()) {
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
