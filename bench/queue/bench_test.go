package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/bench/internal/measure"
	"github.com/taskd-go/task/bench/internal/process"
)

func TestMain(m *testing.M) {
	if name, ok := process.Served(); ok {
		fatal(fmt.Errorf("%s: %w", name, serve(name)))
	}
	os.Exit(m.Run())
}

func TestEveryQueueIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each queue")
	}
	places, err := openStores(t.Context(), io.Discard)
	t.Cleanup(func() { assert.NoError(t, places.close(context.Background())) })
	require.NoError(t, err)
	selected, err := places.openQueues(t.Context(), regexp.MustCompile(""))
	t.Cleanup(func() { assert.NoError(t, selected.close()) })
	require.NoError(t, err)
	p := plan{only: regexp.MustCompile(""), rounds: 1, turn: 20 * time.Millisecond, share: 0.01, pickUps: 1}
	r, err := p.run(t.Context(), selected, io.Discard)
	require.NoError(t, err)
	for _, q := range selected {
		assert.Positive(t, r.Median(q.name, pushCase, measure.Rate), q.name)
		assert.Positive(t, r.Median(q.name, workCase, measure.Rate), q.name)
		assert.Positive(t, r.Median(q.name, pickUpCase, measure.P95), q.name)
	}
	var text bytes.Buffer
	report(&text, p, places, r)
	assert.Contains(t, text.String(), "| this queue, SQLite |")
	assert.NotContains(t, text.String(), "not measured: SQLite")
}
