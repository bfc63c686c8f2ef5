package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
)

// version returns the command that prints text, as --version does. It reads no settings, so a
// broken config file does not matter.
func version(text string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of taskd",
		Long: `Version prints the version of taskd, the commit that it was built from, and the version of Go and
the platform that it was built for. Go records them in the program. A build outside of a checkout
has no commit, and one that is not of a released module has the version (devel).`,
		Example:           `  taskd version`,
		Args:              cli.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
}

// buildText describes this program's build.
func buildText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return describe(info)
}

// describe returns the version, the commit and the Go version of a build, a line for each.
func describe(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		commit += ", with local changes"
	}
	return fmt.Sprintf("taskd %s\ncommit %s\n%s %s/%s\n", cmp.Or(info.Main.Version, "(devel)"), commit,
		info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
