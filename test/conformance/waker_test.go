package conformance

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// TestSQLiteWakerSeesOthersWrite is a waker by itself: a worker would find the job in the end
// without it.
func TestSQLiteWakerSeesOthersWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	ours, err := sqlite.Open(t.Context(), path, sqlite.DurabilityNormal)
	require.NoError(t, err)
	t.Cleanup(func() { ours.Close() })
	db := migrated(t, database{SQL: ours.Write, Dialect: sqlqueue.SQLite})
	others, err := sqlite.Open(t.Context(), path, sqlite.DurabilityNormal)
	require.NoError(t, err)
	t.Cleanup(func() { others.Close() })
	store, err := others.Store()
	require.NoError(t, err)
	listens, err := ours.Store()
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	wakes, ended := make(chan string, 1000), make(chan error, 1)
	go func() { ended <- listens.Wait(ctx, func(name string) { wakes <- name }) }()
	wake := func() {
		t.Helper()
		select {
		case name := <-wakes:
			assert.Empty(t, name, "any queue may have a job")
		case err := <-ended:
			require.Fail(t, "it ended", "%v", err)
		case <-time.After(10 * time.Second):
			require.Fail(t, "it did not wake")
		}
	}
	wake() // for what was there before
	assert.Empty(t, wakes, "nothing was written")
	_, err = queue.New(store).Push(t.Context(), nothing{})
	require.NoError(t, err)
	wake()
	time.Sleep(50 * time.Millisecond) // until what that commit wrote has woken
	for len(wakes) > 0 {
		<-wakes
	}
	require.NoError(t, child(t, db, "push one").Run())
	wake() // for another process
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
}
