package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/waittest"
)

func TestDigestDescribesAFile(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("a line\n", 1000) + "and a rest"
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))

	got, err := digest(t.Context(), file{path})
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(content))
	assert.Equal(t, hex.EncodeToString(sum[:]), got.SHA256)
	assert.EqualValues(t, len(content), got.Bytes)
	assert.EqualValues(t, 1000, got.Lines)
	assert.Positive(t, got.Compressed)
	assert.Less(t, got.Compressed, got.Bytes/10)
}

func TestDigestRefusesAllButFiles(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"no path": "", "a folder": t.TempDir(), "nothing there": "/nonexistent/file",
	} {
		_, err := digest(t.Context(), file{path})
		assert.Error(t, err, name)
	}
}

func TestDigestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the pool ends")
	cancel(why)
	_, err := digest(ctx, file{path})
	assert.ErrorIs(t, err, why)
}

func TestExecRunsWhatAPatternMatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	evil := filepath.Join(dir, "cat")
	require.NoError(t, os.WriteFile(evil, []byte("#!/bin/sh\n"), 0o700))
	for name, c := range map[string]struct {
		patterns patterns
		command  string
		ok       bool
	}{
		"a name":                             {patterns{"cat"}, "cat", true},
		"a name by a wildcard":               {patterns{"c*"}, "cat", true},
		"one of several":                     {patterns{"ls", "cat"}, "cat", true},
		"a path":                             {patterns{evil}, evil, true},
		"a path by a wildcard":               {patterns{dir + "/*"}, evil, true},
		"a path that is not clean":           {patterns{evil}, dir + "/x/../cat", false}, // no such file: x is missing
		"a path with doubled slashes":        {patterns{evil}, dir + "//cat", true},
		"nothing is allowed":                 {nil, "cat", false},
		"another name":                       {patterns{"ls"}, "cat", false},
		"a path with an allowed name":        {patterns{"cat"}, evil, false},
		"a name outside of an allowed path":  {patterns{dir + "/*"}, "cat", false},
		"a wildcard does not cross a folder": {patterns{"/*"}, evil, false},
		"a relative path":                    {patterns{"*", "*/*"}, "./cat", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.patterns.find(c.command)
			assert.Equal(t, c.ok, err == nil, "%v", err)
		})
	}
}

func TestExecReturnsCodeAndOutput(t *testing.T) {
	t.Parallel()
	got, err := patterns{"sh"}.run(t.Context(), command{
		Argv:  []string{"sh", "-c", `cat; echo "$GREETING" >&2; pwd; exit 7`},
		Stdin: "in\n", Dir: "/", Env: map[string]string{"GREETING": "hello"},
	})
	require.NoError(t, err)
	assert.Equal(t, execution{Code: 7, Stdout: "in\n/\n", Stderr: "hello\n"}, got)
}

func TestExecNamesTheSignal(t *testing.T) {
	t.Parallel()
	got, err := patterns{"sh"}.run(t.Context(), command{Argv: []string{"sh", "-c", "kill -TERM $$"}})
	require.NoError(t, err)
	assert.Equal(t, execution{Code: -1, Signal: "terminated"}, got)
}

func TestExecBoundsTheOutput(t *testing.T) {
	t.Parallel()
	got, err := patterns{"head"}.run(t.Context(), command{Argv: []string{"head", "-c", "1000000", "/dev/zero"}})
	require.NoError(t, err)
	assert.Len(t, got.Stdout, outputLimit)
	assert.True(t, got.Truncated)
	assert.Zero(t, got.Code)
}

func TestExecKillsTheGroupAtTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	pids := filepath.Join(t.TempDir(), "pids")
	require.NoError(t, syscall.Mkfifo(pids, 0o600))
	ended := make(chan error, 1)
	go func() {
		script := `sleep 60 & echo $! > ` + pids + `; wait`
		_, err := patterns{"sh"}.run(ctx, command{Argv: []string{"sh", "-c", script}})
		ended <- err
	}()
	grandchild := waittest.PID(t, pids)
	cancel()
	select {
	case err := <-ended:
		assert.ErrorIs(t, err, context.Canceled)
	case <-time.After(time.Minute):
		t.Fatal("exec goes on after the end of its context")
	}
	waittest.Gone(t, grandchild)
}

func TestExecKillsWhatTheCommandLeavesBehind(t *testing.T) {
	t.Parallel()
	script := `sleep 60 >/dev/null 2>&1 & echo $!`
	got, err := patterns{"sh"}.run(t.Context(), command{Argv: []string{"sh", "-c", script}})
	require.NoError(t, err)
	waittest.Gone(t, waittest.Int(t, got.Stdout))
}

func TestSleepWantsADuration(t *testing.T) {
	t.Parallel()
	got, err := sleep(t.Context(), nap{"1ms"})
	require.NoError(t, err)
	assert.Equal(t, "slept 1ms", got)
	_, err = sleep(t.Context(), nap{"NaN"})
	assert.ErrorContains(t, err, `{"for": "1.5s"}`)
}
