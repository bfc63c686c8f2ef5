package pool_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// dialHost starts a host of one worker and connects to it.
func dialHost(t *testing.T) (*host, *task.Client, string) {
	t.Helper()
	dir := shortDir(t)
	h := startHost(t, hostConfig{Dir: dir, Number: 1})
	c, err := task.Dial(t.Context(), task.Config{TempDir: dir, ServerName: "h"})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return h, c, dir
}

// A pool that is back and does not answer, because it is stopped, takes no more of a call's time than the call has.
func TestAttachingAnewIsPartOfTheCallsTime(t *testing.T) {
	parallel(t)
	h, c, dir := dialHost(t)
	pids := h.workers()
	require.NoError(t, h.cmd.Process.Kill())
	h.cmd.Wait()
	ended(t, pids...)
	require.NoError(t, os.Remove(dir+"/h.Pool.sock"))
	eventually(t, func() bool { return c.Status() == nil }, func() string { return "the pool still shows" })
	l, err := net.Listen("unix", dir+"/h.Pool.sock") // it takes connections and says nothing
	require.NoError(t, err)
	defer l.Close()

	answers := make(chan error, 20)
	start := time.Now()
	for range cap(answers) {
		go func() {
			var err error = os.ErrNotExist // what the last look found holds for a moment
			for errors.Is(err, os.ErrNotExist) {
				_, err = c.Sync(context.Background(), Echo{1}, task.WithTimeout(100*time.Millisecond))
			}
			answers <- err
		}()
	}
	for range cap(answers) {
		err := <-answers
		assert.Equal(t, task.NotRun, callError(t, err).Delivery, err)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	assert.Less(t, time.Since(start), soon)
}

// The kernel connects to the pool of a stopped parent, and nothing answers.
func TestDialOfAStoppedParentEndsInTime_Found12(t *testing.T) {
	parallel(t)
	h, c, dir := dialHost(t)
	stop(t, h.cmd.Process.Pid)
	start := time.Now()
	_, err := task.Dial(t.Context(), task.Config{TempDir: dir, ServerName: "h", PushTimeout: 200 * time.Millisecond})
	assert.Equal(t, task.NotRun, callError(t, err).Delivery)
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.ErrorContains(t, err, "pool h in "+dir+": the pool's parent did not answer within 200ms")

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = task.Dial(ctx, task.Config{TempDir: dir, ServerName: "h"})
	assert.Equal(t, task.NotRun, callError(t, err).Delivery)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Len(t, c.Status(), 1, "a client that is connected reads the shared table")
	assert.Less(t, time.Since(start), soon)
}

// The workers of a parent that was killed finish what they run, and its caller has the answer.
func TestAttachingAnewCutsNoCall(t *testing.T) {
	parallel(t)
	h, c, _ := dialHost(t)
	m := testsync.NewRendezvous(t)
	answer := make(chan error, 1)
	go func() {
		_, err := c.Sync(context.Background(), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
		answer <- err
	}()
	g := m.Next()
	require.NoError(t, h.cmd.Process.Kill())
	h.cmd.Wait()
	eventually(t, func() bool { return c.Status() == nil }, func() string { return "the pool still shows" })
	_, err := c.Sync(t.Context(), Echo{1})
	assert.Equal(t, task.NotRun, callError(t, err).Delivery, err)
	g.Release("")
	assert.NoError(t, <-answer)
}
