package queuecmd

import (
	"errors"
	"fmt"
	"sync"

	"github.com/taskd-go/task/job"
)

// Totals count how deliveries of jobs ended. A job that is retried is counted each time.
type Totals struct {
	Done      int `json:"done"`      // or skipped by a layer, or discarded by its handler
	Again     int `json:"again"`     // failed, and will be retried
	Dead      int `json:"dead"`      // became a dead letter
	GaveBack  int `json:"gaveBack"`  // interrupted or deferred; the attempt does not count
	Cancelled int `json:"cancelled"` // stopped by taskd queue cancel
	Lost      int `json:"lost"`      // another worker may have it
}

// A counter counts the events of a worker. It is safe for concurrent use.
type counter struct {
	mu sync.Mutex
	n  Totals
}

func (c *counter) event(e job.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(e.Err, job.ErrCancelled):
		c.n.Cancelled++
	case e.Kind == job.EventSucceeded, e.Kind == job.EventDiscarded, e.Kind == job.EventSkipped:
		c.n.Done++
	case e.Kind == job.EventRequeued:
		c.n.Again++
	case e.Kind == job.EventDead:
		c.n.Dead++
	case e.Kind == job.EventDeferred:
		c.n.GaveBack++
	case e.Kind == job.EventUnsettled:
		c.n.Lost++
	}
}

func (c *counter) totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counter) String() string {
	n := c.totals()
	return fmt.Sprintf("%d done, %d to be tried again, %d dead, %d given back, %d cancelled, %d lost",
		n.Done, n.Again, n.Dead, n.GaveBack, n.Cancelled, n.Lost)
}
