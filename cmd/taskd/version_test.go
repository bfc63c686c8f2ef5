package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
)

func TestVersionIsThatOfTheBuild_Found39(t *testing.T) {
	t.Parallel()
	platform := " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123abcd"}
	for want, info := range map[string]debug.BuildInfo{
		"taskd v1.2.3\ncommit unknown\ngo1.26.1" + platform: {
			GoVersion: "go1.26.1", Main: debug.Module{Version: "v1.2.3"},
		},
		"taskd (devel)\ncommit 0123abcd\ngo1.26.1" + platform: {
			GoVersion: "go1.26.1", Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}},
		},
		"taskd (devel)\ncommit 0123abcd, with local changes\ngo1.26.1" + platform: {
			GoVersion: "go1.26.1", Main: debug.Module{Version: "(devel)"},
			Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}},
		},
	} {
		assert.Equal(t, want, describe(&info))
	}
}

func TestVersionIsACommandAndAFlag_Found39(t *testing.T) {
	t.Parallel()
	broken := writeConfig(t, "wokers = 3")
	for _, args := range [][]string{{"version"}, {"--version"}, {"version", "--config", broken}} {
		code, stdout, stderr := taskd(t, t.TempDir(), args...)
		assert.Zero(t, code, stderr)
		assert.Equal(t, buildText(), stdout, args)
		assert.Contains(t, stdout, runtime.Version())
	}
	code, _, stderr := taskd(t, t.TempDir(), "version", "now")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, `version takes no arguments, and got "now"`)
}
