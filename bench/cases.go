package main

import (
	"fmt"
	"strings"
)

// A kind is what one call asks for.
type kind string

const (
	kindSync      kind = "sync"      // the payload there and back
	kindAsync     kind = "async"     // the payload there, an acceptance back
	kindSyncMany  kind = "syncmany"  // batchSize of the first in one call
	kindAsyncMany kind = "asyncmany" // batchSize of the second in one call
)

const batchSize = 100

// A benchCase is one thing to measure.
type benchCase struct {
	kind    kind
	size    int // bytes of payload of each task
	callers int // that call at the same time, each one call after the other
}

func (c benchCase) String() string {
	return fmt.Sprintf("%s/%s/%d", c.kind, strings.ReplaceAll(bytesText(c.size), " ", ""), c.callers)
}

// tasks is how many tasks one call carries.
func (c benchCase) tasks() int {
	switch c.kind {
	case kindSyncMany, kindAsyncMany:
		return batchSize
	case kindPushMany:
		return queueBatch
	}
	return 1
}

func allCases() []benchCase {
	var cases []benchCase
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		for _, callers := range []int{1, 8, 64} {
			cases = append(cases, benchCase{kindSync, size, callers})
		}
	}
	for _, callers := range []int{1, 8} {
		cases = append(cases, benchCase{kindSync, 1 << 20, callers})
	}
	for _, callers := range []int{1, 8, 64} {
		cases = append(cases, benchCase{kindAsync, 64, callers})
	}
	return append(cases, benchCase{kindSyncMany, 64, 4}, benchCase{kindAsyncMany, 64, 4})
}

func quickCases() []benchCase {
	return []benchCase{
		{kindSync, 64, 1}, {kindSync, 64, 8}, {kindSync, 64, 64},
		{kindSync, 1 << 20, 8},
		{kindAsync, 64, 64}, {kindSyncMany, 64, 4}, {kindAsyncMany, 64, 4},
	}
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d B", n)
	}
}
