package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

func TestMain(m *testing.M) {
	task.Register(Echo{})
	task.RunIfWorker(poolConfig)
	serveIfPeer()
	os.Exit(m.Run())
}

func TestEveryContenderIsMeasured(t *testing.T) {
	sessions, err := open(contenders())
	t.Cleanup(func() { assert.NoError(t, sessions.close()) })
	require.NoError(t, err)
	p := plan{
		rounds: 2, turn: 20 * time.Millisecond,
		cases: []benchCase{{kindSync, 64, 1}, {kindSync, 1 << 20, 1}, {kindAsync, 64, 1}, {kindSyncMany, 64, 1}, {kindAsyncMany, 64, 1}},
	}
	r, err := p.run(sessions, io.Discard)
	require.NoError(t, err)
	for _, c := range contenders() {
		for _, small := range p.cases[:3] {
			assert.Positive(t, r.median(c.name, small, rate), "%s, %s", c.name, small)
			assert.Positive(t, r.median(c.name, small, p99), "%s, %s", c.name, small)
		}
	}
	for _, batch := range p.cases[3:] {
		assert.Positive(t, r.median(nameOurs, batch, rate), batch)
	}
	var text bytes.Buffer
	report(&text, p, r)
	assert.Contains(t, text.String(), "## Sync, 64 B, 1 caller")
	require.NoError(t, chart(t.TempDir()+"/chart.svg", r))
}

func TestEveryQueueIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each queue")
	}
	places, err := openStores(t.Context(), io.Discard)
	t.Cleanup(func() { assert.NoError(t, places.close(context.Background())) })
	require.NoError(t, err)
	field, err := places.openQueues(t.Context(), regexp.MustCompile(""))
	t.Cleanup(func() { assert.NoError(t, field.close()) })
	require.NoError(t, err)
	p := queuePlan{only: regexp.MustCompile(""), rounds: 1, turn: 20 * time.Millisecond, share: 0.01, pickUps: 1}
	r, err := p.run(t.Context(), field, io.Discard)
	require.NoError(t, err)
	for _, q := range field {
		assert.Positive(t, r.median(q.name, pushCase, rate), q.name)
		assert.Positive(t, r.median(q.name, workCase, rate), q.name)
		assert.Positive(t, r.median(q.name, pickUpCase, p95), q.name)
	}
	var text bytes.Buffer
	reportQueues(&text, p, places, r)
	assert.Contains(t, text.String(), "| this queue, SQLite |")
	assert.NotContains(t, text.String(), "not measured: SQLite")
}

func TestAWrongAnswerIsFound(t *testing.T) {
	payload := []byte{1, 2, 3}
	assert.NoError(t, same([]byte{1, 2, 3}, payload))
	assert.ErrorIs(t, same([]byte{1, 2}, payload), errWrongEcho)
	assert.ErrorIs(t, same([]byte{1, 2, 4}, payload), errWrongEcho)
	assert.NoError(t, same(nil, nil))
}

func TestFiguresOfRounds(t *testing.T) {
	c := benchCase{kindSync, 64, 1}
	r := results{samples: map[key][]sample{
		{nameOurs, c}: {{rate: 10}, {rate: 20}, {rate: 90}},
		{nameEcho, c}: {{rate: 10}, {rate: 10}, {rate: 100}},
	}}
	assert.InDelta(t, 20, r.median(nameOurs, c, rate), 0)
	assert.InDelta(t, 1, r.ratio(nameOurs, nameEcho, c, rate), 0, "ratios are taken within a round")
	assert.InDelta(t, 1, r.spread(nameOurs, c, rate), 0)
	assert.True(t, math.IsNaN(r.median("nobody", c, rate)))
	assert.True(t, math.IsNaN(r.ratio(nameOurs, "nobody", c, rate)))
}

func TestAnAimSaysWhetherItIsReached(t *testing.T) {
	figure := func(x float64) func(results) float64 { return func(results) float64 { return x } }
	assert.Equal(t, "- reached: speed: 2.0", atLeast("speed", "%.1f", 2, figure(2)).line(results{}))
	assert.Equal(t, "- **not reached**: speed: 1.9", atLeast("speed", "%.1f", 2, figure(1.9)).line(results{}))
	assert.Equal(t, "- **not reached**: time: 2.1", atMost("time", "%.1f", 2, figure(2.1)).line(results{}))
	assert.Equal(t, "- not measured: time", atMost("time", "%.1f", 2, figure(notMeasured)).line(results{}))
}
