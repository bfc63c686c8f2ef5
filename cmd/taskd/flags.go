package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task"
)

// configField marks a flag that can stand in the environment too, with the field of Config that it sets.
const configField = "taskd_config_field"

// readEnvironment sets the marked flags that were not given from their variables.
func readEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[configField] == nil || f.Changed {
			return
		}
		name := variable(f.Name)
		text, ok := os.LookupEnv(name)
		if !ok {
			return
		}
		if err := flags.Set(f.Name, text); err != nil {
			// The library's text names the flag; the user gave the variable.
			errs = append(errs, fmt.Errorf("%s=%q: %w", name, text, errors.Unwrap(err)))
			return
		}
		f.Annotations[origin] = []string{name + "="}
	})
	return errors.Join(errs...)
}

// variables lists the variables that are set for marked flags.
func variables(flags *pflag.FlagSet) (set []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if _, ok := os.LookupEnv(variable(f.Name)); ok && f.Annotations[configField] != nil {
			set = append(set, variable(f.Name))
		}
	})
	return set
}

// variable is the environment's name of a flag.
func variable(flag string) string {
	return "TASKD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// addTargetFlags adds the flags that say which pool is meant.
func addTargetFlags(flags *pflag.FlagSet, cfg *task.Config) {
	cfg.ServerName = "EasySwoole"
	add(flags, (*word)(&cfg.ServerName), "ServerName", "name", "name of the pool, prefix of its processes and files")
	add(flags, (*word)(&cfg.TempDir), "TempDir", "dir", "folder of the pool's sockets (default: the working directory)")
}

// addPoolFlags adds a flag for every setting of a pool.
func addPoolFlags(flags *pflag.FlagSet, cfg *task.Config) {
	addTargetFlags(flags, cfg)
	cfg.WorkerNum, cfg.MaxRunningNum, cfg.MaxReplacing = 3, 128, 1
	cfg.MaxPackageSize = 2 << 20
	cfg.PushTimeout, cfg.StartTimeout, cfg.DrainTimeout = 5*time.Second, 10*time.Second, 30*time.Second
	cfg.FrameTimeout, cfg.DrainGrace = time.Second, time.Second

	add(flags, count{&cfg.WorkerNum, 1, 512}, "WorkerNum", "workers", "worker processes, 1 to 512")
	add(flags, count{&cfg.MaxRunningNum, 1, math.MaxInt32}, "MaxRunningNum", "max-running", "tasks at once in one worker")
	add(flags, size[int]{&cfg.MaxPackageSize, 512}, "MaxPackageSize", "max-package-size", "bytes of a whole frame, at least 512")
	add(flags, duration{&cfg.PushTimeout, notZero}, "PushTimeout", "push-timeout", "default budget of an asynchronous call; negative: none")
	add(flags, duration{&cfg.SoftTimeLimit, notNegative}, "SoftTimeLimit", "soft-time-limit", "end a task's context after this; 0: never")
	add(flags, duration{&cfg.TimeLimit, notNegative}, "TimeLimit", "time-limit", "replace and kill a task's worker after this; 0: never")
	add(flags, count{&cfg.MaxTasksPerWorker, 0, math.MaxInt}, "MaxTasksPerWorker", "max-tasks", "replace a worker after so many tasks; 0: never")
	add(flags, duration{&cfg.MaxWorkerAge, notNegative}, "MaxWorkerAge", "max-age", "replace a worker of this age; 0: never")
	add(flags, size[int64]{&cfg.MaxWorkerMemory, 0}, "MaxWorkerMemory", "max-memory", "replace a worker of this resident size; 0: never")
	add(flags, count{&cfg.MaxReplacing, 1, 512}, "MaxReplacing", "max-replacing", "workers in replacement at once")
	add(flags, duration{&cfg.StartTimeout, positive}, "StartTimeout", "start-timeout", "limit of a worker's start")
	add(flags, duration{&cfg.DrainTimeout, notZero}, "DrainTimeout", "drain-timeout", "how long a drain waits for running tasks; negative: for ever")
	add(flags, duration{&cfg.FrameTimeout, positive}, "FrameTimeout", "frame-timeout", "limit of a frame's arrival once it has begun")
	add(flags, duration{&cfg.DrainGrace, positive}, "DrainGrace", "drain-grace", "how long a drain waits for peers to stop sending")
	add(flags, (*names)(&cfg.Env), "Env", "env", "names of the variables that the workers get, with commas (default: all)")
	add(flags, &logFormat{logger: &cfg.Logger}, "Logger", "log", "output of the workers and log: raw, text or json")
}

// add adds a flag that sets a field of Config, and can also stand in the environment.
func add(flags *pflag.FlagSet, v pflag.Value, field, name, usage string) {
	f := flags.VarPF(v, name, "", usage)
	f.Annotations = map[string][]string{configField: {field}}
}

// explainConfig says in the words of whoever set it what the library says of a Config.
func explainConfig(flags *pflag.FlagSet, err *task.ConfigError) error {
	said := error(err)
	flags.VisitAll(func(f *pflag.Flag) {
		if field := f.Annotations[configField]; field != nil && field[0] == err.Field {
			said = fmt.Errorf("%s%v: %s", saidBy(f), err.Value, err.Rule)
		}
	})
	return said
}

// saidBy is what stands before a flag's value where it was set.
func saidBy(f *pflag.Flag) string {
	if by := f.Annotations[origin]; by != nil {
		return by[0]
	}
	return "--" + f.Name + " "
}

// A count is a whole number within limits.
type count struct {
	p        *int
	min, max int
}

func (c count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < c.min || n > c.max {
		return fmt.Errorf("want a whole number from %d to %d", c.min, c.max)
	}
	*c.p = n
	return nil
}

func (c count) String() string {
	if c.p == nil {
		return ""
	}
	return strconv.Itoa(*c.p)
}
func (count) Type() string { return "number" }

// A size is a number of bytes, with a unit or without.
type size[T int | int64] struct {
	p   *T
	min T
}

// units is in falling order, so that a size is printed in the largest that divides it.
var units = [...]struct {
	name  string
	bytes uint64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func (z size[T]) Set(s string) error {
	digits, unit := s, uint64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = rest, u.bytes
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt64/unit || uint64(T(n*unit)) != n*unit || T(n*unit) < z.min {
		return fmt.Errorf("want at least %d bytes, such as 65536, 64KiB or 2MiB", z.min)
	}
	*z.p = T(n * unit)
	return nil
}

func (z size[T]) String() string {
	if z.p == nil {
		return ""
	}
	n := uint64(*z.p)
	for _, u := range units {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatUint(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10)
}
func (size[T]) Type() string { return "bytes" }

// A duration is a time span that obeys a rule.
type duration struct {
	p    *time.Duration
	rule func(time.Duration) (ok bool, want string)
}

func positive(d time.Duration) (bool, string)    { return d > 0, "more than 0" }
func notNegative(d time.Duration) (bool, string) { return d >= 0, "0 or more" }
func notZero(d time.Duration) (bool, string)     { return d != 0, "not 0; negative for no limit" }
func unlimited(time.Duration) (bool, string)     { return true, "0 or less for no limit" }

func (v duration) Set(s string) error {
	d, err := time.ParseDuration(s)
	ok, want := v.rule(d)
	if err != nil || !ok {
		return fmt.Errorf("want a duration such as 1.5s or 2m, %s", want)
	}
	*v.p = d
	return nil
}

func (v duration) String() string {
	if v.p == nil || *v.p == 0 {
		return "0"
	}
	return v.p.String()
}
func (duration) Type() string { return "duration" }

// A word is a text that is not empty.
type word string

func (w *word) Set(s string) error {
	if s == "" {
		return errors.New("want a text that is not empty")
	}
	*w = word(s)
	return nil
}
func (w *word) String() string { return string(*w) }
func (*word) Type() string     { return "text" }

// names is a list with commas; given but empty, it is empty and not nil.
type names []string

func (n *names) Set(s string) error {
	*n = names{}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			*n = append(*n, name)
		}
	}
	return nil
}
func (n *names) String() string { return strings.Join(*n, ",") }
func (*names) Type() string     { return "names" }

// A logFormat chooses the logger.
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
