package pool

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, NewCommand()) }

// Chaos: random kill -9, -STOP, -TERM of workers under load, then 1,000 calls
// all succeed and every slot ran some.
func TestChaosEndsWell_Row28(t *testing.T) {
	args := []string{"pool", "--duration", "2s", "--workers", "2", "--seed", "7"}
	code, stdout, stderr := clitest.Run(t, 5*time.Minute, t.TempDir(), args...)
	assert.Zero(t, code, stdout+stderr)
	assert.Contains(t, stdout, "afterwards: 1000 of 1000 calls succeeded")
	assert.Contains(t, stdout, "all checks passed")
}

func TestAnswersAreComparedWithTheirMarkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "markers")
	m, err := newMarkers(path)
	require.NoError(t, err)
	defer m.close()
	other, err := openMarkers(path)
	require.NoError(t, err)
	other.set(3)
	require.NoError(t, other.close())
	assert.True(t, m.ran(3))
	for _, id := range []int64{0, 2, 4, 1 << 20} {
		assert.False(t, m.ran(id), id)
	}

	for name, c := range map[string]struct {
		answer  answer
		problem bool
	}{
		"ran, and did":                  {answer{3, verdict{0, ran, false}}, false},
		"ran, but did not":              {answer{4, verdict{0, ran, false}}, true},
		"not run, and did not":          {answer{4, verdict{task.ErrProcessBusy, notRun, false}}, false},
		"not run, but did":              {answer{3, verdict{task.ErrSockTimeout, notRun, false}}, true},
		"accepted, and lost later":      {answer{4, verdict{0, accepted, false}}, false},
		"may have run, and did":         {answer{3, verdict{task.ErrSockTimeout, mayHaveRun, false}}, false},
		"may have run, but did not":     {answer{4, verdict{task.ErrSockTimeout, mayHaveRun, false}}, false},
		"may have run, late, and ran":   {answer{3, verdict{task.ErrSockTimeout, mayHaveRun, true}}, false},
		"may have run, late, never ran": {answer{4, verdict{task.ErrSockTimeout, mayHaveRun, true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := &chaos{out: io.Discard, markers: m}
			calls := new(tally)
			calls.add([]answer{c.answer})
			calls.report(c2)
			assert.Equal(t, c.problem, len(c2.problems) > 0, c2.problems)
		})
	}
}

func TestErrorsAreClassifiedByTheirDelivery(t *testing.T) {
	lost := func(err error) error { return &task.Error{Status: task.ErrSockTimeout, Err: err} }
	busy := &task.Error{Status: task.ErrProcessBusy, Delivery: task.NotRun}
	failed := &task.Error{Status: task.ErrTask, Delivery: task.Ran}
	for name, c := range map[string]struct {
		err  error
		want verdict
	}{
		"success":           {nil, verdict{0, ran, false}},
		"not run":           {busy, verdict{task.ErrProcessBusy, notRun, false}},
		"ran":               {failed, verdict{task.ErrTask, ran, false}},
		"its worker died":   {lost(errors.New("EOF")), verdict{task.ErrSockTimeout, mayHaveRun, false}},
		"its time was up":   {lost(os.ErrDeadlineExceeded), verdict{task.ErrSockTimeout, mayHaveRun, true}},
		"its context ended": {lost(context.DeadlineExceeded), verdict{task.ErrSockTimeout, mayHaveRun, true}},
	} {
		assert.Equal(t, c.want, classify(c.err, ran), name)
	}
}
