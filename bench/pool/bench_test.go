package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/bench/internal/measure"
	"github.com/taskd-go/task/bench/internal/process"
)

func TestMain(m *testing.M) {
	task.Register(Echo{})
	task.RunIfWorker(poolConfig)
	if name, ok := process.Served(); ok {
		fatal(fmt.Errorf("%s: %w", name, serve(name)))
	}
	os.Exit(m.Run())
}

func TestEveryContenderIsMeasured(t *testing.T) {
	sessions, err := open(contenders())
	t.Cleanup(func() { assert.NoError(t, sessions.close()) })
	require.NoError(t, err)
	p := plan{
		rounds: 2, turn: 20 * time.Millisecond,
		cases: []measure.Case{newCase(kindSync, 64, 1), newCase(kindSync, 1<<20, 1), newCase(kindAsync, 64, 1),
			newCase(kindSyncMany, 64, 1), newCase(kindAsyncMany, 64, 1)},
	}
	r, err := p.run(sessions, io.Discard)
	require.NoError(t, err)
	for _, c := range contenders() {
		for _, small := range p.cases[:3] {
			assert.Positive(t, r.Median(c.name, small, measure.Rate), "%s, %s", c.name, small)
			assert.Positive(t, r.Median(c.name, small, measure.P99), "%s, %s", c.name, small)
		}
	}
	for _, batch := range p.cases[3:] {
		assert.Positive(t, r.Median(nameOurs, batch, measure.Rate), batch)
	}
	var text bytes.Buffer
	report(&text, p, r, measure.NotMeasured)
	assert.Contains(t, text.String(), "## Sync, 64 B, 1 caller")
	require.NoError(t, chart(t.TempDir()+"/chart.svg", r))
}

func TestAWrongAnswerIsFound(t *testing.T) {
	payload := []byte{1, 2, 3}
	assert.NoError(t, same([]byte{1, 2, 3}, payload))
	assert.ErrorIs(t, same([]byte{1, 2}, payload), errWrongEcho)
	assert.ErrorIs(t, same([]byte{1, 2, 4}, payload), errWrongEcho)
	assert.NoError(t, same(nil, nil))
}
