package pool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

func TestTheTaskOfALimitsEventHasItsAge(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: 100 * time.Millisecond})
	before := time.Now()
	_, err := p.Sync(t.Context(), Stuck{}, task.WithTimeLimit(50*time.Millisecond, 150*time.Millisecond), task.WithTimeout(waitLimit))
	require.ErrorIs(t, err, task.ErrTask)
	for kind, limit := range map[string]time.Duration{"soft_limit": 50 * time.Millisecond, "hard_limit": 150 * time.Millisecond} {
		e := p.event(func(e task.Event) bool { return string(e.Kind) == kind })
		require.Len(t, e.Tasks, 1, kind)
		assert.GreaterOrEqual(t, e.Tasks[0].Age, limit, kind)
		assert.LessOrEqual(t, e.Tasks[0].Age, e.Time.Sub(before), kind)
	}
	assert.NotContains(t, p.log.String(), "task.age=0s")
}

func TestAFailedRunOfManyHasItsTaskID(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	o := p.SyncMany(t.Context(), []task.Runner{Fail{Text: "no"}})[0]
	e := callError(t, o.Err)
	assert.Positive(t, o.TaskID)
	assert.Equal(t, e.TaskID, o.TaskID)
	assert.Contains(t, o.Err.Error(), fmt.Sprintf("(status -5, ran, task %d, worker 0 pid %d)", e.TaskID, e.PID))
}
