// Package settings reads the settings of a command from one place for each of them: a flag
// overrides its environment variable, the variable overrides the config file, and the file
// overrides the flag's default.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task"
)

const (
	prefix = "TASKD_"             // of variables
	field  = "taskd_config_field" // the annotation of a flag that can also stand elsewhere
)

// Add adds a flag that can also stand in the environment and in the config file. If it sets a field
// of task.Config, structField is the name of that field.
func Add(flags *pflag.FlagSet, v pflag.Value, structField, name, usage string) {
	f := flags.VarPF(v, name, "", usage)
	f.Annotations = map[string][]string{field: {structField}}
}

// Variable returns the name of a flag in the environment.
func Variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// A Reader reads the settings of one command. The zero value has read nothing.
type Reader struct {
	path string       // of the config file; empty: there is none
	file *koanf.Koanf // what it says; nil: nothing
	set  map[string]setting
}

// A setting is the text of a flag, and its source. Its fields are exported for koanf.
type setting struct {
	Text  string
	Shown string // Text as an error shows it
	From  string // what precedes it there, such as "TASKD_WORKERS="
	Layer layer
}

type layer int

const (
	inFile layer = iota
	inEnvironment
	onCommandLine
)

// Read sets the flags of cmd. It refuses an unknown key and a wrong value in the file for every
// command.
//
// A worker process reads no file: HandOver gave it all settings, and the file may have changed.
func (r *Reader) Read(cmd *cobra.Command) error {
	given, err := readGiven(cmd.Flags())
	if err != nil {
		return err
	}
	all := koanf.New(delimiter)
	var wrong error
	if configurable(cmd.Flags()) && !task.IsWorker() {
		if err := r.open(given); err != nil {
			return err
		}
		var settings map[string]any
		settings, wrong = r.check(cmd)
		if err := all.Load(confmap.Provider(settings, ""), nil); err != nil {
			return err
		}
	}
	if err := all.Merge(given); err != nil {
		return err
	}
	return errors.Join(r.apply(cmd.Flags(), all), wrong)
}

// readGiven returns the settings in the environment and on the command line.
func readGiven(flags *pflag.FlagSet) (*koanf.Koanf, error) {
	names := map[string]string{} // of flags, by variable
	eachSetting(flags, func(f *pflag.Flag) { names[Variable(f.Name)] = f.Name })
	k := koanf.New(delimiter)
	variables := env.Provider("", env.Opt{Prefix: prefix, TransformFunc: func(name, text string) (string, any) {
		return names[name], setting{Text: text, Shown: fmt.Sprintf("%q", text), From: name + "=", Layer: inEnvironment}
	}})
	commandLine := posflag.ProviderWithFlag(flags, "", nil, func(f *pflag.Flag) (string, any) {
		if !isSetting(f) {
			return "", nil
		}
		return f.Name, setting{Text: f.Value.String(), From: "--" + f.Name + " ", Layer: onCommandLine}
	})
	return k, errors.Join(k.Load(variables, nil), k.Load(commandLine, nil))
}

// apply sets the flags that the command line did not set.
func (r *Reader) apply(flags *pflag.FlagSet, all *koanf.Koanf) error {
	r.set = map[string]setting{}
	var errs []error
	eachSetting(flags, func(f *pflag.Flag) {
		s, ok := all.Get(f.Name).(setting)
		if !ok {
			return
		}
		r.set[f.Name] = s
		if s.Layer == onCommandLine {
			return
		}
		if err := f.Value.Set(s.Text); err != nil {
			errs = append(errs, fmt.Errorf("%s%s: %w", s.From, s.Shown, err))
			return
		}
		f.Changed = true
	})
	return errors.Join(errs...)
}

// From returns what precedes the value of a flag where the user wrote it: "--name ", "TASKD_NAME="
// or "FILE: name = ".
func (r *Reader) From(flag string) string {
	if s, ok := r.set[flag]; ok {
		return s.From
	}
	return "--" + flag + " "
}

// FromFile reports whether the config file set a flag.
func (r *Reader) FromFile(flag string) bool {
	s, ok := r.set[flag]
	return ok && s.Layer == inFile
}

// Explain names the flag, variable or key that the user wrote in place of the field of task.Config
// that err names.
func (r *Reader) Explain(flags *pflag.FlagSet, err *task.ConfigError) error {
	explained := error(err)
	eachSetting(flags, func(f *pflag.Flag) {
		if f.Annotations[field][0] == err.Field {
			explained = fmt.Errorf("%s%v: %s", r.From(f.Name), err.Value, err.Rule)
		}
	})
	return explained
}

// HandOver puts the file's settings into the environment for worker processes, which do not read
// the file. They need no database, so its name and password stay here.
func (r *Reader) HandOver() error {
	var errs []error
	for name, s := range r.set {
		if s.Layer == inFile && name != DSN {
			errs = append(errs, os.Setenv(Variable(name), s.Text))
		}
	}
	return errors.Join(errs...)
}

// Variables returns the names of the variables that are set for the flags, in order.
func Variables(flags *pflag.FlagSet) []string {
	set := map[string]bool{}
	eachSetting(flags, func(f *pflag.Flag) {
		if _, ok := os.LookupEnv(Variable(f.Name)); ok {
			set[Variable(f.Name)] = true
		}
	})
	return slices.Sorted(maps.Keys(set))
}

func isSetting(f *pflag.Flag) bool { return f.Annotations[field] != nil }

func eachSetting(flags *pflag.FlagSet, do func(*pflag.Flag)) {
	flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			do(f)
		}
	})
}
