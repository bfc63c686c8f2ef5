package queue

import (
	"database/sql/driver"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/sqltest"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// The statements of a worker, as far as a stepHook reads them.
var (
	claimCall    = &sqltest.Call{Statement: "UPDATE jobs SET attempts = attempts + 1", Rows: 1}
	completeCall = &sqltest.Call{Statement: "DELETE FROM jobs WHERE", Rows: 1}
	renewCall    = &sqltest.Call{Statement: "UPDATE jobs SET lease_until = ", Tx: new(sqltest.Tx), Rows: 1}
)

// requeueCall returns the statement that frees a row and subtracts so many attempts.
func requeueCall(attempts int64) *sqltest.Call {
	return &sqltest.Call{
		Statement: "UPDATE jobs SET reserved_token = NULL", Args: []driver.NamedValue{{Ordinal: 1, Value: attempts}},
		Tx: new(sqltest.Tx), Rows: 1,
	}
}

// newTestHook returns the hook of a step, and how often it waited.
func newTestHook(t *testing.T, name string, running func() bool, wait func()) (h *stepHook, waits *int) {
	t.Helper()
	s, ok := stepNamed(name)
	require.True(t, ok)
	waits = new(int)
	return newStepHook(s, sqlqueue.Tables{}, running, func() bool {
		*waits++
		wait()
		return false
	}), waits
}

// A claim that waited at the hook used up the lease of its job: the lease counts from when the claim is sent. On a busy
// machine the worker lost the lease before the job ran, and a crash was counted that no kill had caused.
func TestAStoppedWorkerDoesNotHoldItsNextClaim_Found90(t *testing.T) {
	var h *stepHook
	var claim error
	h, waits := newTestHook(t, "finished, not stored", nil, func() { claim = h.before(t.Context(), claimCall) })
	require.NoError(t, h.before(t.Context(), claimCall), "the first job")
	require.NoError(t, h.after(t.Context(), claimCall))
	require.ErrorIs(t, h.before(t.Context(), claimCall), errOneJob, "before the step")
	require.NoError(t, h.before(t.Context(), completeCall))
	assert.Equal(t, 1, *waits)
	assert.ErrorIs(t, claim, errOneJob, "at the step")
	assert.NoError(t, h.before(t.Context(), claimCall), "after the step")
}

// A renewal may come before the job has begun. A kill there made nothing run again.
func TestARenewalBeforeTheJobBeginsIsNotTheStep_Found90(t *testing.T) {
	running := false
	h, waits := newTestHook(t, "renewing its lease", func() bool { return running }, func() {})
	require.NoError(t, h.after(t.Context(), renewCall))
	assert.Zero(t, *waits)
	running = true
	require.NoError(t, h.after(t.Context(), renewCall))
	require.NoError(t, h.after(t.Context(), renewCall))
	assert.Equal(t, 1, *waits)
}

// A job that found no process of the pool is given back. It has not failed, and comes again.
func TestAJobThatIsGivenBackIsNotRequeued_Found90(t *testing.T) {
	h, waits := newTestHook(t, "requeueing", nil, func() {})
	require.NoError(t, h.after(t.Context(), claimCall))
	require.NoError(t, h.after(t.Context(), requeueCall(1)))
	assert.Zero(t, *waits)
	require.NoError(t, h.before(t.Context(), claimCall), "it comes again")
	require.NoError(t, h.after(t.Context(), claimCall))
	require.NoError(t, h.after(t.Context(), requeueCall(0)))
	assert.Equal(t, 1, *waits)
}
