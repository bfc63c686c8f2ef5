package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

// readNumbers reads settings a to d, whose default is 1, with a config file.
func readNumbers(t *testing.T, file string, args ...string) (r *Reader, numbers [4]int, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "taskd.toml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	r = &Reader{}
	cmd := &cobra.Command{}
	r.AddFlag(cmd.Flags())
	for i, name := range []string{"a", "b", "c", "d"} {
		numbers[i] = 1
		Add(cmd.Flags(), Count{P: &numbers[i], Min: 1, Max: 9}, "Field"+name, name, "")
	}
	require.NoError(t, cmd.ParseFlags(append(args, "--config", path)))
	err = r.Read(cmd)
	for i, name := range []string{"a", "b", "c", "d"} {
		explained := r.Explain(cmd.Flags(), &task.ConfigError{Field: "Field" + name, Value: numbers[i], Rule: "rule"})
		assert.Contains(t, explained.Error(), r.From(name))
	}
	return r, numbers, err
}

func TestALayerOverridesTheOnesBelowIt(t *testing.T) {
	t.Setenv("TASKD_A", "3")
	t.Setenv("TASKD_B", "3")
	r, got, err := readNumbers(t, "a = 2\nb = 2\nc = 2", "--a", "4")
	require.NoError(t, err)
	assert.Equal(t, [4]int{4, 3, 2, 1}, got)
	assert.Equal(t, "--a ", r.From("a"))
	assert.Equal(t, "TASKD_B=", r.From("b"))
	assert.Contains(t, r.From("c"), "taskd.toml: c = ")
	assert.Equal(t, "--d ", r.From("d"))
	assert.True(t, r.FromFile("c"))
	assert.False(t, r.FromFile("b"))
}

func TestEachWrongSettingIsNamedWithItsPlace(t *testing.T) {
	t.Setenv("TASKD_A", "0")
	_, _, err := readNumbers(t, "b = 10\ne = 1")
	assert.ErrorContains(t, err, `TASKD_A="0": want a whole number from 1 to 9`)
	assert.ErrorContains(t, err, `taskd.toml: b = 10: want a whole number from 1 to 9`)
	assert.ErrorContains(t, err, `taskd.toml: e = 1: there is no such setting`)
}

func TestHandOverPutsTheFilesSettingsIntoTheEnvironment(t *testing.T) {
	t.Setenv("TASKD_A", "3")
	t.Setenv("TASKD_B", "") // which restores it
	os.Unsetenv("TASKD_B")
	r, _, err := readNumbers(t, "a = 2\nb = 2")
	require.NoError(t, err)
	require.NoError(t, r.HandOver())
	assert.Equal(t, "3", os.Getenv("TASKD_A"))
	assert.Equal(t, "2", os.Getenv("TASKD_B"))
}
