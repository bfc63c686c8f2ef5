package queue

import (
	"fmt"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// The values of Config.Driver.
const (
	DriverDatabase = "database"
	DriverSync     = "sync"
)

// A Config chooses a program's queue.
type Config struct {
	Driver     string // DriverDatabase or DriverSync
	Queue      string // the default queue
	Connection string // which of the program's databases, for connect; "": its default one

	JobsTable, FailedTable string // names of tables; "": the defaults of sqlqueue.Tables
}

// ReadConfig reads the settings of a queue from a decoded JSON file, which may be nil, and from the
// environment, which overrides the file. getenv is os.Getenv or like it; nil means no environment.
// These are the keys of the file, the variables and the defaults:
//
//	driver                          QUEUE_DRIVER          database
//	default_queue                   QUEUE_NAME            default
//	drivers.database.connection     QUEUE_DB_CONNECTION
//	drivers.database.jobs_table                           jobs
//	drivers.database.failed_table                         failed_jobs
//
// ReadConfig returns a *ConfigError for a value that is not text and a section that is not an
// object.
func ReadConfig(file map[string]any, getenv func(string) string) (Config, error) {
	c := Config{Driver: DriverDatabase, Queue: job.DefaultQueue}
	drivers, err := section(file, "drivers")
	if err != nil {
		return c, err
	}
	database, err := section(drivers, "database")
	if err != nil {
		return c, err
	}
	for _, setting := range []struct {
		file      map[string]any
		key, name string
		into      *string
	}{
		{file, "driver", "QUEUE_DRIVER", &c.Driver},
		{file, "default_queue", "QUEUE_NAME", &c.Queue},
		{database, "connection", "QUEUE_DB_CONNECTION", &c.Connection},
		{database, "jobs_table", "", &c.JobsTable},
		{database, "failed_table", "", &c.FailedTable},
	} {
		switch v := setting.file[setting.key].(type) {
		case nil:
		case string:
			*setting.into = v
		default:
			return c, &ConfigError{Option: setting.key, Value: v, Rule: "must be text"}
		}
		if getenv != nil && setting.name != "" {
			if v := getenv(setting.name); v != "" {
				*setting.into = v
			}
		}
	}
	return c, nil
}

func section(file map[string]any, key string) (map[string]any, error) {
	switch v := file[key].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	default:
		return nil, &ConfigError{Option: key, Value: v, Rule: "must be a section"}
	}
}

// Open returns the queue that c chooses: with DriverDatabase one over the store that connect opens
// for c, with DriverSync that of NewSync with the handlers of reg. For another Driver it returns a
// *ConfigError.
func (c Config) Open(connect func(Config) (backend.Backend, error), reg *job.Registry, opts ...Option) (*Queue, error) {
	opts = append([]Option{DefaultQueue(c.Queue)}, opts...)
	switch c.Driver {
	case DriverSync:
		return NewSync(reg, opts...), nil
	case DriverDatabase:
		b, err := connect(c)
		if err != nil {
			return nil, fmt.Errorf("queue: connection %q: %w", c.Connection, err)
		}
		return New(b, opts...), nil
	}
	return nil, &ConfigError{Option: "driver", Value: fmt.Sprintf("%q", c.Driver), Rule: "must be database or sync"}
}
