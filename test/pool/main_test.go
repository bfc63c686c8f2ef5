package pool_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/testsync"
)

// waitLimit bounds every wait for an event that is certain to come.
const waitLimit = testsync.WaitLimit

// soon bounds what takes milliseconds on an idle machine and has to happen without waiting for
// something slower.
const soon = 10 * time.Second

// briefly is the timeout of calls that have to begin and then run out of time, also on a busy machine.
const briefly = time.Second

func TestMain(m *testing.M) {
	if host := os.Getenv("TEST_HOST"); host != "" {
		os.Exit(runHost(host)) // and so do the host's workers
	}
	if task.IsWorker() {
		name := serverName()
		task.RunIfWorker(poolConfig(name, os.Getenv(onStartVariable(name))))
	}
	task.RunIfWorker()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each worker of a race test sleeps for a second at its end
	os.Exit(runTests(m))
}

// poolConfig is what the workers of this binary need to know: the name of their pool and the functions.
func poolConfig(name, onStart string) task.Config {
	cfg := task.Config{ServerName: name}
	if onStart != "" {
		cfg.OnWorkerStart = onWorkerStart(onStart)
	}
	cfg.OnException = func(err *task.Error, index int) {
		fmt.Fprintf(os.Stderr, "OnException worker=%d status=%d delivery=%s task=%d: %s\n", index, err.Status, err.Delivery, err.TaskID, err.Message)
	}
	return cfg
}

// serverName is the name of the pool that this process is a worker of. The library has taken it out of
// the environment by now; the kernel keeps the one that the process was started with.
func serverName() string {
	environment, _ := os.ReadFile("/proc/self/environ")
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		if marker, ok := strings.CutPrefix(variable, control.EnvMarker+"="); ok {
			_, name, _ := strings.Cut(marker, " ")
			return name
		}
	}
	return ""
}

// onStart returns the name of a pool whose workers do something in OnWorkerStart; see onWorkerStart.
// Each has a name of its own, so that tests with different ones can run at the same time.
func onStart(t *testing.T, what string) string {
	t.Helper()
	name := fmt.Sprintf("s%d", startNames.Add(1))
	os.Setenv(onStartVariable(name), what)
	t.Cleanup(func() { os.Unsetenv(onStartVariable(name)) })
	return name
}

var startNames atomic.Int64

func onStartVariable(name string) string { return "TEST_ON_WORKER_START_" + name }
