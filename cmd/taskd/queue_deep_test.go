package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/database"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
	"github.com/taskd-go/task/cmd/taskd/internal/waittest"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

// An idle job is pushed and never runs.
type idle struct{}

func (idle) JobType() string              { return "idle" }
func (idle) Handle(context.Context) error { return nil }

// open opens the database in the test process, which is faster than many commands.
func (j *jobs) open() *database.DB {
	j.t.Helper()
	at := database.NewTarget(&settings.Reader{})
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	at.AddFlags(flags)
	require.NoError(j.t, flags.Parse([]string{"--dsn", j.dsn}))
	db, err := at.Open(j.t.Context())
	require.NoError(j.t, err)
	j.t.Cleanup(func() { db.Close() })
	return db
}

// pushMany pushes n jobs of a type that no command knows.
func (j *jobs) pushMany(n int) *database.DB {
	j.t.Helper()
	db := j.open()
	js := make([]queue.Job, n)
	for i := range js {
		js[i] = idle{}
	}
	_, err := db.Queue.PushMany(j.t.Context(), js)
	require.NoError(j.t, err)
	return db
}

// failMany makes n dead letters.
func (j *jobs) failMany(n int) *database.DB {
	j.t.Helper()
	db := j.pushMany(n)
	quiet := queue.Runner(&job.Runner{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	none, err := job.NewRegistry()
	require.NoError(j.t, err)
	_, err = queue.NewWorker(db.Queue, none, quiet).WorkUntilEmpty(j.t.Context(), 0)
	require.NoError(j.t, err)
	return db
}

func letterCount(t *testing.T, db *database.DB) int {
	t.Helper()
	classes, err := db.Queue.CountFailed(t.Context(), queue.Filter{})
	require.NoError(t, err)
	total := 0
	for _, n := range classes {
		total += n
	}
	return total
}

// Counting costs O(n), so the command counts up to a limit and says so.
func TestADeepQueueIsCountedToACap_Row49(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.pushMany(queue.MaxCount - 1)
	var size struct {
		Size, Ready int
		AtLeast     bool
	}
	j.read(&size, "size")
	assert.Equal(t, queue.MaxCount-1, size.Ready)
	assert.False(t, size.AtLeast)
	assert.NotContains(t, j.ok("size"), "+")

	j.pushMany(3)
	j.read(&size, "size")
	assert.Equal(t, []int{queue.MaxCount, queue.MaxCount}, []int{size.Size, size.Ready})
	assert.True(t, size.AtLeast)
	assert.Regexp(t, fmt.Sprintf(`\b%d\+ +%d\+ +0 +0\b`, queue.MaxCount, queue.MaxCount), j.ok("size"))
	_, _, stderr := j.run("clear")
	assert.Contains(t, stderr, fmt.Sprintf("remove %d+ jobs of every queue", queue.MaxCount))
}

func TestRetryOfAllShowsItsProgress(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.failMany(500)
	code, stdout, stderr := j.run("retry", "--all", "--yes")
	assert.Zero(t, code, stderr)
	assert.Equal(t, "500 dead letters are back in their queues\n", stdout)
	var want strings.Builder
	for n := 50; n <= 500; n += 50 {
		fmt.Fprintf(&want, "%d of 500\n", n)
	}
	assert.Equal(t, want.String(), stderr)
	assert.Equal(t, 500, j.size().Ready)
}

func TestRetryOfFewShowsNoProgressUnlessItIsSlow(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.failMany(10)
	_, _, stderr := j.run("retry", "--all", "--yes", "--limit", "5")
	assert.Empty(t, stderr)
	_, _, stderr = j.run("retry", "--all", "--yes", "--rate", "1000")
	assert.Contains(t, stderr, "5 of 5\n")
}

func TestRetryOfAllKeepsItsRateAndCanBeInterrupted(t *testing.T) {
	t.Parallel()
	const n, rate, atOnce = 600, 20, 2 // a tenth of the rate goes at once
	j := newJobs(t)
	db := j.failMany(n)
	begin := time.Now()
	p := j.start("retry", "--all", "--yes", "--rate", fmt.Sprint(rate))
	waittest.Eventually(t, "some are back", func() bool {
		back := n - letterCount(t, db)
		assert.LessOrEqual(t, float64(back), rate*time.Since(begin).Seconds()+atOnce)
		return back >= 8
	})
	p.Signal(syscall.SIGINT)
	code, stdout, stderr := p.Wait()
	assert.Equal(t, cli.ExitInterrupted, code, stderr)
	left := letterCount(t, db)
	assert.Positive(t, left)
	assert.Equal(t, fmt.Sprintf("%d dead letters are back in their queues\n", n-left), stdout)
	assert.Equal(t, n-left, j.size().Ready)

	assert.Contains(t, j.ok("retry", "--all", "--yes"), fmt.Sprintf("%d dead letters are back", left))
	assert.Equal(t, n, j.size().Ready)
	assert.Empty(t, j.failed())
}
