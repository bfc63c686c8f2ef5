package poolcmd

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/cmd/taskd/internal/settings"
)

// addTargetFlags adds the flags that name a pool.
func addTargetFlags(flags *pflag.FlagSet, cfg *task.Config) {
	cfg.ServerName = task.DefaultConfig().ServerName
	settings.Add(flags, (*settings.Text)(&cfg.ServerName), "ServerName", "name",
		"name of the pool, prefix of its processes and files")
	settings.Add(flags, (*settings.Text)(&cfg.TempDir), "TempDir", "dir",
		"folder of the pool's sockets (default: the working directory)")
}

// addPoolFlags adds a flag for every setting of a pool. The defaults are the library's.
func addPoolFlags(flags *pflag.FlagSet, cfg *task.Config) {
	*cfg = task.DefaultConfig()
	addTargetFlags(flags, cfg)

	count := func(p *int, min, max int, field, name, usage string) {
		settings.Add(flags, settings.Count{P: p, Min: min, Max: max}, field, name, usage)
	}
	duration := func(p *time.Duration, rule settings.Rule, field, name, usage string) {
		settings.Add(flags, settings.Duration{P: p, Rule: rule}, field, name, usage)
	}
	count(&cfg.WorkerNum, 1, 512, "WorkerNum", "workers", "worker processes, 1 to 512")
	count(&cfg.MaxRunningNum, 1, math.MaxInt32, "MaxRunningNum", "max-running", "tasks at once in one worker")
	settings.Add(flags, settings.Size[int]{P: &cfg.MaxPackageSize, Min: 512}, "MaxPackageSize", "max-package-size",
		"size limit of a request or response, at least 512")
	duration(&cfg.PushTimeout, settings.NotZero, "PushTimeout", "push-timeout",
		"default time limit of an asynchronous call; negative: none")
	duration(&cfg.SoftTimeLimit, settings.NotNegative, "SoftTimeLimit", "soft-time-limit",
		"end a task's context after this; 0: never")
	duration(&cfg.TimeLimit, settings.NotNegative, "TimeLimit", "time-limit",
		"end a task's call and replace its worker after this; 0: never")
	count(&cfg.MaxTasksPerWorker, 0, math.MaxInt, "MaxTasksPerWorker", "max-tasks",
		"replace a worker after this many tasks; 0: never")
	duration(&cfg.MaxWorkerAge, settings.NotNegative, "MaxWorkerAge", "max-age",
		"replace a worker at this age; 0: never")
	settings.Add(flags, settings.Size[int64]{P: &cfg.MaxWorkerMemory}, "MaxWorkerMemory", "max-memory",
		"replace a worker at this resident size; 0: never")
	count(&cfg.MaxReplacing, 1, 512, "MaxReplacing", "max-replacing", "workers that may be replaced at once")
	duration(&cfg.StartTimeout, settings.Positive, "StartTimeout", "start-timeout", "time limit of a worker's start")
	duration(&cfg.DrainTimeout, settings.NotZero, "DrainTimeout", "drain-timeout",
		"how long a drain waits for running tasks; negative: without a limit")
	duration(&cfg.FrameTimeout, settings.Positive, "FrameTimeout", "frame-timeout",
		"time limit of a request from its first byte to its last")
	duration(&cfg.DrainGrace, settings.Positive, "DrainGrace", "drain-grace",
		"how long a drain waits for clients to stop sending")
	settings.Add(flags, (*settings.Names)(&cfg.Env), "Env", "env",
		"environment variables that the workers get, separated by commas (default: all)")
	settings.Add(flags, &logFormat{logger: &cfg.Logger}, "Logger", "log",
		"format of the log and of the workers' output: raw, text or json")
}

// A logFormat is a flag's value that chooses a logger.
type logFormat struct {
	logger **slog.Logger
	format string
}

func (l *logFormat) Set(s string) error {
	switch s {
	case "raw":
		*l.logger = nil
	case "text":
		*l.logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	case "json":
		*l.logger = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	default:
		return errors.New("want raw, text or json")
	}
	l.format = s
	return nil
}

func (l *logFormat) String() string {
	if l.format == "" {
		return "raw"
	}
	return l.format
}

func (*logFormat) Type() string { return "format" }
