package settings

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/queue"
)

// Keys of the file that queue.ReadConfig reads, and the section of databases. All values are texts.
const (
	driverKey     = "queue.driver"
	queueKey      = "queue.default_queue"
	connectionKey = "queue.drivers.database.connection"
	jobsKey       = "queue.drivers.database.jobs_table"
	failedKey     = "queue.drivers.database.failed_table"
	connections   = "connections."
)

const connectionVariable = "QUEUE_DB_CONNECTION"

var errNotOfQueue = errors.New("no key of the queue's own settings")

// checkQueue checks a value of the queue's own settings. For any other key it returns
// errNotOfQueue.
func checkQueue(key string, value any) error {
	keys := []string{driverKey, queueKey, connectionKey, jobsKey, failedKey}
	if !strings.HasPrefix(key, connections) && !slices.Contains(keys, key) {
		return errNotOfQueue
	}
	if text, ok := value.(string); !ok || text == "" {
		return errors.New("want a text that is not empty")
	}
	return nil
}

// Queue returns the queue's own settings. QUEUE_DRIVER, QUEUE_NAME and QUEUE_DB_CONNECTION override
// the file.
func (r *Reader) Queue() (queue.Config, error) {
	var section map[string]any
	if r.file != nil {
		section = r.file.Cut("queue").Raw()
	}
	settings, err := queue.ReadConfig(section, os.Getenv)
	if err == nil && settings.Driver != queue.DriverDatabase {
		by := r.by("QUEUE_DRIVER", driverKey)
		return settings, cli.Usagef("%s%q: want database; sync keeps no jobs and is for programs", by, settings.Driver)
	}
	return settings, err
}

// by returns what precedes the value of one of the queue's own settings where the user wrote it.
func (r *Reader) by(variable, key string) string {
	if os.Getenv(variable) != "" {
		return variable + "="
	}
	return r.path + ": " + key + " = "
}

// DefaultQueue sets a flag that names a queue, unless the user did, to the queue of the queue's own
// settings.
func (r *Reader) DefaultQueue(flag *pflag.Flag) error {
	if flag.Changed {
		return nil
	}
	settings, err := r.Queue()
	if err != nil {
		return err
	}
	if err := flag.Value.Set(settings.Queue); err != nil {
		return cli.Usagef("%s%q: %w", r.by("QUEUE_NAME", queueKey), settings.Queue, err)
	}
	return nil
}

// Connection returns the database that settings name in the section [connections], and where it
// stands. Both are empty if settings name none.
func (r *Reader) Connection(settings queue.Config) (dsn, by string, err error) {
	if settings.Connection == "" {
		return "", "", nil
	}
	if r.file != nil {
		dsn, _ = r.file.All()[connections+settings.Connection].(string)
	}
	if dsn == "" {
		return "", "", cli.Usagef("%s%q: want a name from the section [connections] of the config file",
			r.by(connectionVariable, connectionKey), settings.Connection)
	}
	return dsn, r.path + ": " + connections + settings.Connection, nil
}

// ConnectionInEnvironment reports whether the environment names the connection, which overrides a
// database in the file.
func ConnectionInEnvironment() bool { return os.Getenv(connectionVariable) != "" }
