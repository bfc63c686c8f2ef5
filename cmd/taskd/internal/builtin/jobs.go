package builtin

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task/cmd/taskd/internal/periodic"
	"github.com/taskd-go/task/job"
)

// Jobs are the job types exec and http.
type Jobs struct{ allowed patterns }

// Help describes the job types.
func (*Jobs) Help() string {
	return `  exec  {"argv": [COMMAND, ...], "stdin": "", "dir": "", "env": {}}
        Exit code 0 is success; anything else is retried. Work runs only commands that match an
        --allow-exec pattern. A pattern with a slash is for the command's absolute path, one
        without a slash for a bare name. The command's output goes to standard error. Its process
        group is killed when the worker ends for any reason, at the job's time limit, and before
        the job's lease expires.
  http  {"url": URL, "body": any JSON, "headers": {}, "timeout": "30s"}
        Sends a POST. A status of 2xx is success, 4xx is a final failure, anything else is
        retried. The header Idempotency-Key is the same for each attempt.`
}

// AddFlags adds the flag that limits the commands of exec.
func (j *Jobs) AddFlags(flags *pflag.FlagSet) { j.allowed.addFlag(flags) }

// Handlers returns the handlers of the job types. lease is the time that a job stays reserved
// without being renewed. pooled says that they may run in a worker process, whose parent renews the
// lease and calls Heartbeat.
func (j *Jobs) Handlers(lease time.Duration, pooled bool) (*job.Registry, error) {
	watch := func() func() bool { return func() bool { return true } }
	if path := os.Getenv(heartbeatVariable); pooled && path != "" {
		watch = func() func() bool { return heartbeats(path, lease/4) }
	}
	// A worker that stops leaves at least two thirds of a lease, since it renews at each third. Its
	// guards kill their commands before that has passed.
	return job.NewRegistry(execJobs(j.allowed, lease/2, watch), httpJobs())
}

// heartbeatVariable names the file that the parent of worker processes touches while it lives. A
// parent that is stopped, by Ctrl-Z for instance, renews no leases, and the commands of its pool
// must end before those lapse.
const heartbeatVariable = "TASKD_QUEUE_HEARTBEAT"

// Heartbeat touches the file at path, until stop, for worker processes that start after it.
func (*Jobs) Heartbeat(path string, lease time.Duration) (stop func(), err error) {
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Setenv(heartbeatVariable, path)); err != nil {
		return nil, err
	}
	return periodic.Call(lease/20, func() bool {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // a missed heartbeat shows where it is awaited
		return true
	}), nil
}

// heartbeats returns a function that reports whether the file at path was touched within limit.
func heartbeats(path string, limit time.Duration) (alive func() bool) {
	seen, last := time.Now(), time.Time{} // when, on the monotonic clock, and the file's time then
	return func() bool {
		if info, err := os.Stat(path); err == nil && !info.ModTime().Equal(last) {
			seen, last = time.Now(), info.ModTime()
		}
		return time.Since(seen) < limit
	}
}
