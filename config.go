package task

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/registry"
	"github.com/taskd-go/task/internal/supervisor"
	"github.com/taskd-go/task/protocol"
)

// Limits of a Config.
const (
	MaxWorkerNum  = 512
	MaxSocketPath = 100 // bytes; sun_path holds 104 on macOS and 108 on Linux
)

const defaultSyncTimeout = 3 * time.Second

// A Config describes a pool. A zero field means its default. In a worker only
// the functions, Tasks and ServerName count; the numbers and TempDir are the parent's.
type Config struct {
	WorkerNum      int           // worker processes, 1 … 512; default 3
	MaxRunningNum  int           // tasks at once in one worker, at least 1; default 128
	MaxPackageSize int           // bytes of a whole frame with its 4-byte header, at least 512; default 2 MiB
	PushTimeout    time.Duration // budget of an Async that names none; negative: no deadline; default 5 s
	ServerName     string        // prefix of process names and socket files, without "/" and NUL; default "EasySwoole"
	TempDir        string        // where the socket files are; New makes it absolute; default: the working directory
	Tasks          []Runner      // the task types that the workers run; empty: every registered one

	// OnWorkerStart runs once in each worker, after its row in the table is set
	// and before it accepts. Its error or panic fails that start. ctx ends when the
	// parent is gone, and a second later so does the process.
	OnWorkerStart func(ctx context.Context, w Worker) error
	// OnException runs in the worker, once for each failure that the task's own
	// handler did not settle. It may be called from several goroutines at once.
	OnException func(err *Error, workerIndex int)

	SoftTimeLimit time.Duration // a task's context ends after it; 0: none
	TimeLimit     time.Duration // a task's caller is answered and its worker replaced after it; 0: none

	MaxTasksPerWorker int           // a worker is replaced after so many tasks, and at random up to a tenth more; 0: never
	MaxWorkerAge      time.Duration // the same by age; 0: never
	MaxWorkerMemory   int64         // the same by resident size in bytes, looked at each second while tasks run; 0: never
	MaxReplacing      int           // workers that may be in replacement at once; default 1

	StartTimeout time.Duration // from a worker's fork to its readiness; default 10 s
	DrainTimeout time.Duration // how long running tasks may go on in a drain; negative: for ever; default 30 s
	FrameTimeout time.Duration // for the rest of a frame whose first byte has arrived; default 1 s
	DrainGrace   time.Duration // how long a draining worker waits for a client's last frame where the system has no exact barrier; default 1 s

	Env []string // names of the environment variables that workers get; nil: all

	// Logger gets the library's records and the workers' output, line by line,
	// tagged with index and pid. Nil: the records go to slog.Default() and the
	// workers' output goes on to this process's stdout and stderr as it is.
	Logger *slog.Logger
	// OnEvent is told of every change of a worker's state, one at a time and in
	// order, from a goroutine of its own in the parent. It may call Reload and
	// Shutdown. When it is slow, 1,024 events wait and further ones are dropped and counted.
	OnEvent func(Event)
}

// A ConfigError is a value of a Config that breaks a rule.
type ConfigError struct {
	Field string
	Value any
	Rule  string
}

// Error names the field, the value and the rule.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("task: Config.%s is %v: %s", e.Field, e.Value, e.Rule)
}

func (c Config) withDefaults() Config {
	setDefault(&c.WorkerNum, 3)
	setDefault(&c.MaxRunningNum, 128)
	setDefault(&c.MaxPackageSize, protocol.DefaultPackageSize)
	setDefault(&c.PushTimeout, 5*time.Second)
	setDefault(&c.ServerName, "EasySwoole")
	setDefault(&c.TempDir, ".")
	setDefault(&c.MaxReplacing, 1)
	setDefault(&c.StartTimeout, 10*time.Second)
	setDefault(&c.DrainTimeout, 30*time.Second)
	setDefault(&c.FrameTimeout, time.Second)
	setDefault(&c.DrainGrace, time.Second)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// complete fills in the defaults and checks every rule that needs no file.
func (c Config) complete() (Config, error) {
	c = c.withDefaults()
	dir, err := filepath.Abs(c.TempDir)
	if err != nil {
		return c, &ConfigError{"TempDir", c.TempDir, err.Error()}
	}
	c.TempDir = dir
	for _, check := range []func() error{c.checkNumbers, c.checkTimes, c.checkNames} {
		if err := check(); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c Config) checkNumbers() error {
	for _, n := range []struct {
		field      string
		value, min int64
		max        int64
	}{
		{"WorkerNum", int64(c.WorkerNum), 1, MaxWorkerNum},
		{"MaxRunningNum", int64(c.MaxRunningNum), 1, math.MaxInt32},
		{"MaxPackageSize", int64(c.MaxPackageSize), protocol.MinPackageSize, math.MaxInt32},
		{"MaxTasksPerWorker", int64(c.MaxTasksPerWorker), 0, math.MaxInt32},
		{"MaxWorkerMemory", c.MaxWorkerMemory, 0, math.MaxInt64},
		{"MaxReplacing", int64(c.MaxReplacing), 1, MaxWorkerNum},
	} {
		if n.value < n.min || n.value > n.max {
			return &ConfigError{n.field, n.value, fmt.Sprintf("it must be from %d to %d", n.min, n.max)}
		}
	}
	return nil
}

func (c Config) checkTimes() error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"SoftTimeLimit", c.SoftTimeLimit},
		{"TimeLimit", c.TimeLimit},
		{"MaxWorkerAge", c.MaxWorkerAge},
		{"StartTimeout", c.StartTimeout},
		{"FrameTimeout", c.FrameTimeout},
		{"DrainGrace", c.DrainGrace},
	} {
		if d.value < 0 {
			return &ConfigError{d.field, d.value, "it must not be negative"}
		}
	}
	if c.TimeLimit > 0 && c.SoftTimeLimit >= c.TimeLimit {
		return &ConfigError{"SoftTimeLimit", c.SoftTimeLimit, fmt.Sprintf("it must be below TimeLimit, %v", c.TimeLimit)}
	}
	return nil
}

func (c Config) checkNames() error {
	if strings.ContainsAny(c.ServerName, "/\x00") {
		return &ConfigError{"ServerName", fmt.Sprintf("%q", c.ServerName), `it must not contain "/" or a NUL byte`}
	}
	if strings.ContainsRune(c.TempDir, 0) {
		return &ConfigError{"TempDir", fmt.Sprintf("%q", c.TempDir), "it must not contain a NUL byte"}
	}
	path := supervisor.SocketPath(c.TempDir, c.ServerName, c.WorkerNum-1)
	if len(path) > MaxSocketPath {
		return &ConfigError{"TempDir", c.TempDir, fmt.Sprintf(
			"the socket path %s has %d bytes and the limit is %d: use a shorter TempDir or ServerName", path, len(path), MaxSocketPath)}
	}
	for _, name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return &ConfigError{"Env", fmt.Sprintf("%q", name), "it lists names of variables, without values"}
		}
	}
	for _, r := range c.Tasks {
		if r == nil {
			return &ConfigError{"Tasks", nil, "it must not contain nil"}
		}
		if _, _, known := registry.Find(r); !known {
			return &ConfigError{"Tasks", fmt.Sprintf("%T", r), "the type is not registered: call Register before New"}
		}
	}
	return nil
}

// checkDir finds out now, rather than in a worker, that sockets cannot live in TempDir.
func (c Config) checkDir() error {
	info, err := os.Stat(c.TempDir)
	if err != nil {
		return &ConfigError{"TempDir", c.TempDir, err.Error()}
	}
	if !info.IsDir() {
		return &ConfigError{"TempDir", c.TempDir, "it must be a directory"}
	}
	f, err := os.CreateTemp(c.TempDir, ".taskd-*")
	if err != nil {
		return &ConfigError{"TempDir", c.TempDir, "it must be writable: " + err.Error()}
	}
	f.Close()
	return os.Remove(f.Name())
}

func (c Config) allowed() []string {
	names := make([]string, 0, len(c.Tasks))
	for _, r := range c.Tasks {
		name, _, _ := registry.Find(r)
		names = append(names, name)
	}
	return names
}

func (c Config) settings() control.Settings {
	return control.Settings{
		WorkerNum:         c.WorkerNum,
		MaxRunningNum:     c.MaxRunningNum,
		MaxPackageSize:    c.MaxPackageSize,
		SoftTimeLimit:     c.SoftTimeLimit,
		TimeLimit:         c.TimeLimit,
		DrainTimeout:      c.DrainTimeout,
		FrameTimeout:      c.FrameTimeout,
		DrainGrace:        c.DrainGrace,
		MaxTasksPerWorker: c.MaxTasksPerWorker,
		MaxWorkerAge:      c.MaxWorkerAge,
		MaxWorkerMemory:   c.MaxWorkerMemory,
	}
}
