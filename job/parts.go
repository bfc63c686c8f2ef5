package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

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

// Build makes the parts that c describes. drivers open further kinds of dead-letter store by their
// names; they override the built-in log_only, memory and file. A name that is in neither is an
// error.
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
