// Package signals turns SIGINT and SIGTERM into contexts, for the programs of this tree.
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Two returns contexts that end with the first and with the second SIGINT or SIGTERM. stop
// ends both contexts and restores the default effect of the signals.
func Two(parent context.Context) (first, second context.Context, stop func()) {
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	first, endFirst := context.WithCancel(parent)
	second, endSecond := context.WithCancel(parent)

	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for _, end := range []context.CancelFunc{endFirst, endSecond} {
			select {
			case <-received:
				end()
			case <-done:
				return
			}
		}
	})
	return first, second, func() {
		signal.Stop(received)
		close(done)
		wait.Wait()
		endFirst()
		endSecond()
	}
}
