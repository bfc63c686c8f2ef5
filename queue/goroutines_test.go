package queue

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestAGoroutinePoolKeepsItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left in the end
		over := make(chan struct{})
		c := goroutinePool{next: make(chan func()), over: over}
		ran := 0
		c.run(func() { ran++ })
		synctest.Wait()
		select {
		case c.next <- func() { ran++ }:
		default:
			assert.Fail(t, "nobody waits")
		}
		synctest.Wait()
		close(over)
		synctest.Wait()
		c.run(func() { ran++ })
		synctest.Wait()
		assert.Equal(t, 3, ran, "the end is for those that wait")
	})
}
