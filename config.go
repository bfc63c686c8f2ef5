package task

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/registry"
	"github.com/taskd-go/task/internal/supervisor"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/worker"
)

// Limits of a Config.
const (
	MaxWorkerNum  = sharedstate.MaxWorkers // 512 worker processes
	MaxSocketPath = 100                    // bytes; sun_path holds 104 on macOS and 108 on Linux
)

// A Config describes a pool. For a zero field New takes the default. New refuses a value that
// breaks a rule with a *ConfigError. In a worker of the pool only ServerName, OnWorkerStart and
// OnException count; everything else comes from the parent.
type Config struct {
	// WorkerNum is the number of worker processes, 1 … 512. The default is 3.
	WorkerNum int
	// MaxRunningNum is how many tasks run at once in one worker, at least 1. The default is 128.
	MaxRunningNum int
	// MaxPackageSize bounds the size of a frame in bytes, its 4-byte header included. It is at
	// least 512. The default is 2 MiB.
	MaxPackageSize int
	// PushTimeout bounds a call of Async or AsyncMany without WithTimeout, and Dial with a context
	// that has no deadline. Negative: no deadline. The default is 5 s.
	PushTimeout time.Duration
	// ServerName is the prefix of the names of the processes and of the socket files. It has no "/"
	// and no NUL byte; two pools of one program need two names. The default is "EasySwoole".
	ServerName string
	// TempDir is the directory of the socket files; New makes it absolute. It must be writable and
	// belong to this user or root (root may use any user's); if every user may write in it, it must
	// have the sticky bit. A socket's path in it has at most MaxSocketPath bytes. The default is the
	// working directory.
	TempDir string
	// Tasks lists the tasks that the workers run: a value of each registered type, and Named(name,
	// nil) for a function of Define. The default is every registered task.
	Tasks []Runner

	// OnWorkerStart runs once in each worker, before the worker accepts calls. An error or a panic
	// fails the start of that worker. ctx ends when the parent is gone; a second later the process
	// exits. The default is nil: nothing runs.
	OnWorkerStart func(ctx context.Context, w Worker) error
	// OnException runs in the worker, once for each failure that the task's own OnException did not
	// turn into a result. Several goroutines may call it at once. The default is nil: nothing runs.
	OnException func(err *Error, workerIndex int)

	// SoftTimeLimit is how long a task runs before its context ends. It must be below TimeLimit if
	// that is set. Both count from the moment in which the task takes its slot. 0, the default: no
	// limit.
	SoftTimeLimit time.Duration
	// TimeLimit is how long a task runs before its call fails and its worker is replaced. The
	// worker's other tasks have DrainTimeout to end, then the process is killed. 0, the default: no
	// limit.
	TimeLimit time.Duration

	// MaxTasksPerWorker is how many tasks a worker runs before it is replaced. Each worker adds up
	// to a tenth, at random, to this limit and the next two. 0, the default: no limit.
	MaxTasksPerWorker int
	// MaxWorkerAge is how long a worker accepts calls before it is replaced. 0, the default: no
	// limit.
	MaxWorkerAge time.Duration
	// MaxWorkerMemory is the resident size in bytes above which a worker is replaced. The worker
	// measures it each second while tasks run. A limit below the size of an idle worker fails the
	// start. 0, the default: no limit.
	MaxWorkerMemory int64
	// MaxReplacing, 1 … 512, bounds how many workers a Reload and the three limits above replace at
	// once. The default is 1.
	MaxReplacing int

	// StartTimeout bounds the time from the start of a worker process to its readiness; a slower
	// worker is killed. The default is 10 s.
	StartTimeout time.Duration
	// DrainTimeout bounds how long running tasks go on in a worker that drains. Their contexts end
	// a second earlier, or a fifth of DrainTimeout earlier if that is less. Negative: no bound. The
	// default is 30 s.
	DrainTimeout time.Duration
	// FrameTimeout bounds how long the rest of a frame may take once its first byte has arrived.
	// The default is 1 s.
	FrameTimeout time.Duration
	// DrainGrace bounds how long a worker that drains waits for the last frame of a client. It
	// counts on systems other than Linux, where the worker cannot tell which frame is the last. The
	// default is 1 s.
	DrainGrace time.Duration

	// Env lists the names of the environment variables that the workers get. The default, nil,
	// means all; an empty list means none.
	Env []string

	// Logger gets the library's records and the workers' output, line by line, with the attributes
	// worker, pid and stream. A line of more than 64 KiB becomes several records; their attribute
	// part is "first" in the first one and "more" in the others. The default is nil: the records go
	// to slog.Default(), and the workers' output goes in whole lines to the stdout and stderr of this
	// process, which name the worker at each cut of a line of more than 64 KiB.
	Logger *slog.Logger
	// OnEvent gets every change in the state of a worker or the pool, one at a time and in order,
	// on a goroutine of its own in the parent. It may call Reload and Shutdown. While it is slow,
	// 1,024 events wait; the pool drops further ones and counts them in Event.Dropped. The default
	// is nil: the events are only logged.
	OnEvent func(Event)
}

// DefaultConfig returns a Config with the default of each field but TempDir and the functions.
func DefaultConfig() Config {
	return Config{
		WorkerNum:      3,
		MaxRunningNum:  128,
		MaxPackageSize: protocol.DefaultPackageSize,
		PushTimeout:    5 * time.Second,
		ServerName:     "EasySwoole",
		MaxReplacing:   1,
		StartTimeout:   10 * time.Second,
		DrainTimeout:   30 * time.Second,
		FrameTimeout:   worker.DefaultFrameTimeout,
		DrainGrace:     worker.DefaultDrainGrace,
	}
}

// A ConfigError is the error for a value of a Config that breaks a rule.
type ConfigError struct {
	Field string
	Value any
	Rule  string
}

// Error returns the field, the value and the rule.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("task: Config.%s is %v: %s", e.Field, e.Value, e.Rule)
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	setDefault(&c.WorkerNum, d.WorkerNum)
	setDefault(&c.MaxRunningNum, d.MaxRunningNum)
	setDefault(&c.MaxPackageSize, d.MaxPackageSize)
	setDefault(&c.PushTimeout, d.PushTimeout)
	setDefault(&c.ServerName, d.ServerName)
	setDefault(&c.TempDir, ".")
	setDefault(&c.MaxReplacing, d.MaxReplacing)
	setDefault(&c.StartTimeout, d.StartTimeout)
	setDefault(&c.DrainTimeout, d.DrainTimeout)
	setDefault(&c.FrameTimeout, d.FrameTimeout)
	setDefault(&c.DrainGrace, d.DrainGrace)
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
		return &ConfigError{
			"SoftTimeLimit",
			c.SoftTimeLimit,
			fmt.Sprintf("it must be below TimeLimit, %v", c.TimeLimit),
		}
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
			"the socket path %s has %d bytes and the limit is %d: use a shorter TempDir or ServerName",
			path,
			len(path),
			MaxSocketPath,
		)}
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

// checkDir checks that TempDir is a directory in which files can be made, so that a bad one fails
// New and not a worker.
func (c Config) checkDir() error {
	info, err := os.Stat(c.TempDir)
	if err != nil {
		return &ConfigError{"TempDir", c.TempDir, err.Error()}
	}
	if !info.IsDir() {
		return &ConfigError{"TempDir", c.TempDir, "it must be a directory"}
	}
	if rule := safeDir(info, os.Getuid()); rule != "" {
		return &ConfigError{"TempDir", c.TempDir, rule}
	}
	f, err := os.CreateTemp(c.TempDir, ".taskd-*")
	if err != nil {
		return &ConfigError{"TempDir", c.TempDir, "it must be writable: " + err.Error()}
	}
	f.Close()
	return os.Remove(f.Name())
}

// safeDir returns the rule that the directory breaks, "" if it breaks none. In one that breaks a
// rule, another user can put a socket of its own in the place of a worker's. uid is the user of this
// process; root may use the directory of any user.
func safeDir(info os.FileInfo, uid int) string {
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fmt.Sprintf("every user may write in it (mode %04o): remove that permission, or set the sticky bit",
			info.Mode().Perm())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && uid != 0 && st.Uid != 0 && int(st.Uid) != uid {
		return fmt.Sprintf("it belongs to user %d, but must belong to user %d, which is ours, or to root", st.Uid, uid)
	}
	return ""
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
