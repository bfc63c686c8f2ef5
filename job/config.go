package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of the dead-letter drivers. Build has the first three; a program gives it any other.
const (
	DriverLogOnly   = "log_only"
	DriverMemory    = "memory"
	DriverFile      = "file"
	DriverRedisList = "redis_list"
)

// A Config has the settings of a program's jobs: retries, time limit and dead letters.
type Config struct {
	MaxAttempts int // below 1 counts as 1
	BaseDelay   time.Duration
	Multiplier  float64
	MaxDelay    time.Duration
	Timeout     time.Duration // of one run; <= 0: none
	DeadLetter  DeadLetterConfig
}

// A DeadLetterConfig says where dead letters are stored.
type DeadLetterConfig struct {
	Driver    string
	KeyPrefix string // of a Redis list, before the queue's name
	Path      string // of the file
}

// DefaultConfig returns what ReadConfig returns if nothing is set.
func DefaultConfig() Config {
	p := DefaultRetryPolicy()
	return Config{
		MaxAttempts: p.MaxAttempts, BaseDelay: p.BaseDelay, Multiplier: p.Multiplier, MaxDelay: p.MaxDelay,
		Timeout:    120 * time.Second,
		DeadLetter: DeadLetterConfig{Driver: DriverRedisList, KeyPrefix: "job:dead:"},
	}
}

// ReadConfig reads the settings of jobs from a decoded JSON file, with or without the outer key
// "job", and from the environment, which overrides the file. getenv may be os.Getenv; nil means no
// environment.
//
//	default_max_attempts           JOB_MAX_ATTEMPTS
//	base_delay_ms                  JOB_BASE_DELAY_MS
//	backoff_multiplier             JOB_BACKOFF_MULTIPLIER
//	max_delay_ms                   JOB_MAX_DELAY_MS
//	handler_timeout_seconds        JOB_HANDLER_TIMEOUT_SECONDS
//	dead_letter.driver             JOB_DLQ
//	dead_letter.redis_key_prefix   JOB_DLQ_REDIS_PREFIX
//	dead_letter.path               JOB_DLQ_PATH
//
// ReadConfig ignores a value of the wrong kind, NaN and infinities among them, and takes the next
// source; ignored lists these values, for a log.
func ReadConfig(file map[string]any, getenv func(string) string) (cfg Config, ignored []string) {
	if inner, ok := file["job"].(map[string]any); ok {
		file = inner
	}
	dead, ok := file["dead_letter"].(map[string]any)
	r := reader{getenv: getenv}
	if file["dead_letter"] != nil && !ok {
		r.ignore("dead_letter", file["dead_letter"])
	}
	cfg = DefaultConfig()
	r.count(file, "default_max_attempts", "JOB_MAX_ATTEMPTS", &cfg.MaxAttempts)
	r.duration(file, "base_delay_ms", "JOB_BASE_DELAY_MS", time.Millisecond, &cfg.BaseDelay)
	r.float(file, "backoff_multiplier", "JOB_BACKOFF_MULTIPLIER", &cfg.Multiplier)
	r.duration(file, "max_delay_ms", "JOB_MAX_DELAY_MS", time.Millisecond, &cfg.MaxDelay)
	r.duration(file, "handler_timeout_seconds", "JOB_HANDLER_TIMEOUT_SECONDS", time.Second, &cfg.Timeout)
	r.text(dead, "driver", "JOB_DLQ", &cfg.DeadLetter.Driver)
	r.text(dead, "redis_key_prefix", "JOB_DLQ_REDIS_PREFIX", &cfg.DeadLetter.KeyPrefix)
	r.text(dead, "path", "JOB_DLQ_PATH", &cfg.DeadLetter.Path)
	return cfg, r.ignored
}

// Policy returns the retry policy of c, with the default jitter.
func (c Config) Policy() RetryPolicy {
	return RetryPolicy{
		MaxAttempts: max(c.MaxAttempts, 1), BaseDelay: c.BaseDelay, MaxDelay: c.MaxDelay,
		Multiplier: c.Multiplier, Jitter: DefaultRetryPolicy().Jitter,
	}.normal()
}

// A reader takes each setting from the first source that has a value of the right kind.
type reader struct {
	getenv  func(string) string
	ignored []string
}

func (r *reader) ignore(name string, value any) {
	r.ignored = append(r.ignored, fmt.Sprintf("%s=%v", name, value))
}

func (r *reader) float(file map[string]any, key, env string, into *float64) {
	if r.getenv != nil {
		if v := r.getenv(env); v != "" {
			if f, ok := finite(v); ok {
				*into = f
				return
			}
			r.ignore(env, v)
		}
	}
	if v := file[key]; v != nil {
		if f, ok := finite(v); ok {
			*into = f
			return
		}
		r.ignore(key, v)
	}
}

func (r *reader) count(file map[string]any, key, env string, into *int) {
	f := float64(*into)
	r.float(file, key, env, &f)
	*into = int(min(max(f, math.MinInt32), Unlimited))
}

func (r *reader) duration(file map[string]any, key, env string, unit time.Duration, into *time.Duration) {
	f := float64(*into) / float64(unit)
	r.float(file, key, env, &f)
	const limit = float64(math.MaxInt64 / 2) // beyond any useful delay, and far from overflow
	*into = time.Duration(min(max(f*float64(unit), -limit), limit))
}

func (r *reader) text(file map[string]any, key, env string, into *string) {
	if r.getenv != nil {
		if v := r.getenv(env); v != "" {
			*into = v
			return
		}
	}
	switch v := file[key].(type) {
	case nil:
	case string:
		if v != "" {
			*into = v
		}
	default:
		r.ignore(key, v)
	}
}

// finite returns the finite number that v is or spells.
func finite(v any) (float64, bool) {
	var f float64
	switch v := v.(type) {
	case int:
		f = float64(v)
	case int64:
		f = float64(v)
	case float64:
		f = v
	case json.Number:
		return finite(string(v))
	case string:
		var err error
		if f, err = strconv.ParseFloat(v, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}

// OpenDeadLetters opens the store that a Config names. Parts.Close closes a store that is an
// io.Closer.
type OpenDeadLetters func(Config) (DeadLetters, error)

// Parts are what a program needs to run its jobs.
type Parts struct {
	Policy      RetryPolicy
	Runner      *Runner
	Registry    *Registry
	DeadLetters DeadLetters
}

// Build makes the parts that c describes. drivers has more kinds of dead-letter store, by name;
// they override the built-in log_only, memory and file. A driver that is neither in drivers nor
// built in is an error.
func (c Config) Build(drivers map[string]OpenDeadLetters, handlers ...Handler) (*Parts, error) {
	registry, err := NewRegistry(handlers...)
	if err != nil {
		return nil, err
	}
	store, err := c.openDeadLetters(drivers)
	if err != nil {
		return nil, err
	}
	policy := c.Policy()
	runner := &Runner{Policy: policy, Timeout: c.Timeout, KeepErrors: MaxFailures}
	return &Parts{Policy: policy, Runner: runner, Registry: registry, DeadLetters: store}, nil
}

func (c Config) openDeadLetters(drivers map[string]OpenDeadLetters) (DeadLetters, error) {
	all := map[string]OpenDeadLetters{
		DriverLogOnly: func(Config) (DeadLetters, error) { return LogDeadLetters{}, nil },
		DriverMemory:  func(Config) (DeadLetters, error) { return NewMemoryDeadLetters(), nil },
		DriverFile:    openFile,
	}
	maps.Copy(all, drivers)
	name := c.DeadLetter.Driver
	open := all[name]
	if open == nil {
		known := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
		err := fmt.Errorf("job: dead-letter driver %q was not given to Build, which has %s", name, known)
		if name == DriverRedisList {
			err = fmt.Errorf("%w; github.com/taskd-go/task/contrib has it", err)
		}
		return nil, err
	}
	store, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("job: dead-letter driver %q: %w", name, err)
	}
	return store, nil
}

func openFile(c Config) (DeadLetters, error) {
	if c.DeadLetter.Path == "" {
		return nil, errors.New("dead_letter.path (JOB_DLQ_PATH) must name the file")
	}
	return OpenFileDeadLetters(c.DeadLetter.Path)
}

// Publisher returns a Publisher with the policy of p.
func (p *Parts) Publisher(publish func(context.Context, Envelope) error) *Publisher {
	return NewPublisher(publish, p.Policy)
}

// Close closes the store of dead letters if it is an io.Closer.
func (p *Parts) Close() error {
	if c, ok := p.DeadLetters.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
