package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/queue"
)

const (
	configFlag    = "config"
	systemConfig  = "/etc/taskd.toml"
	maxConfig     = 1 << 20 // bytes
	dsnFlag       = "dsn"
	connectionsAt = "connections."
)

// queueSettings are the keys of a config file that queue.ReadConfig reads; all are texts.
var queueSettings = []string{"queue.driver", "queue.default_queue", "queue.drivers.database.connection",
	"queue.drivers.database.jobs_table", "queue.drivers.database.failed_table"}

// A configFile is what the config file says. The zero value says nothing.
type configFile struct {
	path        string
	queue       map[string]any    // as queue.ReadConfig wants it
	connections map[string]string // databases by name
}

// addFlag adds the flag that names the file.
func (c *configFile) addFlag(flags *pflag.FlagSet) {
	flags.StringVar(&c.path, configFlag, "", `file with settings; "" for none (default: $XDG_CONFIG_HOME/taskd/config.toml, else `+systemConfig+")")
	flags.Lookup(configFlag).Annotations = map[string][]string{configField: {""}}
}

// read sets the flags of cmd that were neither given nor in the environment, and refuses what is wrong for any command.
// A worker process reads nothing: handOver gave it all, and the file may have changed since.
func (c *configFile) read(cmd *cobra.Command) error {
	if !configurable(cmd.Flags()) || task.IsWorker() {
		return nil
	}
	text, err := c.open(cmd.Flags().Changed(configFlag))
	if err != nil || c.path == "" {
		return err
	}
	var sections map[string]any
	if _, err := toml.Decode(text, &sections); err != nil {
		return usagef("%s: %s", c.path, strings.TrimPrefix(err.Error(), "toml: "))
	}
	c.queue, _ = sections["queue"].(map[string]any)
	settings := map[string]any{}
	flatten("", sections, settings)
	flags := settable(cmd.Root())
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if err := c.apply(key, settings[key], flags[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s = %s: %w", c.path, key, shown(key, settings[key]), err))
		}
	}
	return errors.Join(errs...)
}

const connectionVariable = "QUEUE_DB_CONNECTION"

// settings are the queue's own settings, of which QUEUE_DRIVER, QUEUE_NAME and QUEUE_DB_CONNECTION go before the file.
func (c *configFile) settings() (queue.Config, error) {
	settings, err := queue.ReadConfig(c.queue, os.Getenv)
	if err == nil && settings.Driver != queue.DriverDatabase {
		return settings, usagef("%s%q: want database; sync keeps no jobs and is for programs", c.by("QUEUE_DRIVER", "queue.driver"), settings.Driver)
	}
	return settings, err
}

// by is what stands before the value of a setting where it was set.
func (c *configFile) by(variable, key string) string {
	if os.Getenv(variable) != "" {
		return variable + "="
	}
	return c.path + ": " + key + " = "
}

// defaultQueue is the queue that is meant where no flag names one.
func (c *configFile) defaultQueue(flag *pflag.Flag) error {
	if flag.Changed {
		return nil
	}
	settings, err := c.settings()
	if err != nil {
		return err
	}
	if err := flag.Value.Set(settings.Queue); err != nil {
		return usagef("%s%q: %w", c.by("QUEUE_NAME", "queue.default_queue"), settings.Queue, err)
	}
	return nil
}

// configurable reports whether a command has settings; a file must not keep the help from being read.
func configurable(flags *pflag.FlagSet) (any bool) {
	flags.VisitAll(func(f *pflag.Flag) { any = any || f.Name != configFlag && f.Annotations[configField] != nil })
	return any
}

// open finds the file and reads it. Without one it sets no path.
func (c *configFile) open(named bool) (text string, err error) {
	paths := []string{c.path}
	if !named {
		paths = defaultConfigs()
	}
	for _, c.path = range paths {
		if c.path == "" {
			return "", nil
		}
		text, err = readConfig(c.path)
		if err == nil || named || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			break
		}
		c.path, err = "", nil
	}
	if err != nil {
		return "", usagef("the config file: %w; --%s '' reads none", err, configFlag)
	}
	return text, nil
}

// defaultConfigs are the files of which the first that is there counts: the user's own, then the machine's.
func defaultConfigs() (paths []string) {
	if dir, err := os.UserConfigDir(); err == nil && filepath.IsAbs(dir) {
		paths = append(paths, filepath.Join(dir, "taskd", "config.toml"))
	}
	return append(paths, systemConfig)
}

func readConfig(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("%s: want at most %d bytes", path, maxConfig)
	}
	return string(text), err
}

// flatten puts what stands in sections under keys with points.
func flatten(prefix string, section, into map[string]any) {
	for name, value := range section {
		if inner, ok := value.(map[string]any); ok {
			flatten(prefix+name+".", inner, into)
			continue
		}
		into[prefix+name] = value
	}
}

// settable are the flags of all commands that can stand in a file, by their names.
func settable(root *cobra.Command) map[string][]*pflag.Flag {
	found := map[string][]*pflag.Flag{}
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				if f.Name != configFlag && f.Annotations[configField] != nil {
					found[f.Name] = append(found[f.Name], f)
				}
			})
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(root)
	return found
}

// apply takes one setting. The flags of commands that do not run are set too: they say whether the value is good.
func (c *configFile) apply(key string, value any, flags []*pflag.Flag) error {
	name, isConnection := strings.CutPrefix(key, connectionsAt)
	switch {
	case isConnection || slices.Contains(queueSettings, key):
		text, ok := value.(string)
		if !ok || text == "" {
			return errors.New("want a text that is not empty")
		}
		if isConnection {
			if c.connections == nil {
				c.connections = map[string]string{}
			}
			c.connections[name] = text
		}
		return nil
	case len(flags) == 0:
		return errors.New("there is no such setting; taskd --help says which there are")
	}
	text, err := textOf(flags[0].Value.Type(), value)
	if err != nil {
		return err
	}
	for _, f := range flags {
		if f.Changed { // by the command line or the environment, or it is in the list twice
			continue
		}
		if err := f.Value.Set(text); err != nil {
			return err
		}
		f.Changed = true
		f.Annotations[fileSays], f.Annotations[origin] = []string{text}, []string{c.path + ": " + key + " = "}
	}
	return nil
}

const (
	fileSays = "taskd_file"   // marks a flag that was set by the file, with its text
	origin   = "taskd_origin" // and one that was not given on the command line, with what stands before its value
)

// kinds says what a file must have for a flag of that type.
var kinds = map[string]string{
	"number": "want a whole number", "bytes": `want a number of bytes, or a text such as "2MiB"`,
	"duration": `want a text such as "1.5s"`, "names": "want a list of texts", "patterns": "want a list of texts",
}

// textOf is a value as a command line would have it.
func textOf(kind string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		if kind != "number" && kind != "names" && kind != "patterns" {
			return v, nil
		}
	case int64:
		if kind == "number" || kind == "bytes" {
			return strconv.FormatInt(v, 10), nil
		}
	case []any:
		list := make([]string, len(v))
		good := kind == "names" || kind == "patterns"
		for i := range v {
			text, ok := v[i].(string)
			list[i], good = text, good && ok && !strings.Contains(text, ",")
		}
		if good {
			return strings.Join(list, ","), nil
		}
	}
	if want, ok := kinds[kind]; ok {
		return "", errors.New(want)
	}
	return "", errors.New("want a text")
}

// shown is a value for an error. The name of a database may hold a password.
func shown(key string, value any) string {
	if key == dsnFlag || strings.HasPrefix(key, connectionsAt) {
		return "(not shown)"
	}
	if text, ok := value.(string); ok {
		return strconv.Quote(text)
	}
	return cell(fmt.Sprint(value), 80)
}

// handOver puts what the file set into the environment, from where worker processes take it, those too that start
// when the file has changed. They need no database.
func handOver(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if text := f.Annotations[fileSays]; text != nil && f.Name != dsnFlag {
			errs = append(errs, os.Setenv(variable(f.Name), text[0]))
		}
	})
	return errors.Join(errs...)
}
