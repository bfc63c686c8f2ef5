package main

import (
	"bytes"

	"github.com/panjf2000/ants/v2"

	"github.com/taskd-go/task/bench/internal/measure"
)

// openAnts opens a pool of goroutines: the cost of a call that stays in the process.
func openAnts([]string) (session, error) {
	pool, err := ants.NewPool(workers * poolConfig.MaxRunningNum)
	if err != nil {
		return session{}, err
	}
	return session{
		caller: func(_ int, c measure.Case, payload []byte) (func() error, error) {
			return antsCall(pool, c, payload), nil
		},
		close: func() error { pool.Release(); return nil },
	}, nil
}

func antsCall(pool *ants.Pool, c measure.Case, payload []byte) func() error {
	done := make(chan []byte, 1)
	switch c.Kind {
	case kindSync:
		return func() error {
			if err := pool.Submit(func() { done <- bytes.Clone(payload) }); err != nil {
				return err
			}
			return same(<-done, payload)
		}
	case kindAsync:
		return func() error { return pool.Submit(func() { _ = bytes.Clone(payload) }) }
	default:
		return nil
	}
}
