package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlite"
)

// childFile names the file that a copy of the test binary shall work off.
const childFile = "TASKD_TEST_WORK_OFF"

func TestMain(m *testing.M) {
	task.RunIfWorker()
	if path := os.Getenv(childFile); path != "" {
		if err := workOff(context.Background(), path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// workOff works an SQLite file off and prints how many jobs ran.
func workOff(ctx context.Context, path string) error {
	db, err := sqlite.Open(ctx, path, sqlite.Normal)
	if err != nil {
		return err
	}
	defer db.Close()
	q, err := db.Queue()
	if err != nil {
		return err
	}
	var ran atomic.Int64
	reg, err := job.NewRegistry(job.Func("nothing", func(context.Context, job.Envelope) job.Result {
		ran.Add(1)
		return job.Success()
	}))
	if err != nil {
		return err
	}
	_, err = queue.NewWorker(q, reg, queue.Concurrency(20)).WorkUntilEmpty(ctx, 0)
	fmt.Println(ran.Load())
	return err
}

// reexec starts a copy of the test binary that works a file off, and returns a function that waits for its number.
func reexec(t *testing.T, path string) func() int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+path)
	return func() int {
		out, err := cmd.Output()
		assert.NoError(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(out)))
		assert.NoError(t, err, "%s", out)
		return n
	}
}
