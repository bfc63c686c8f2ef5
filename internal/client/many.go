package client

import (
	"context"
	"sync"
)

// Many delivers each call once; replies[i] or failures[i] belong to calls[i].
func (c *Client) Many(ctx context.Context, calls []Call) ([]Reply, []*Failure) {
	replies, failures := make([]Reply, len(calls)), make([]*Failure, len(calls))
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { replies[i], failures[i] = c.Do(ctx, &calls[i]) })
	}
	wg.Wait()
	return replies, failures
}

type batch struct{}

func (b *batch) finished(*waiter) {}
