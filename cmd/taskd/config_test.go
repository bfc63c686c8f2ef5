package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/cmd/taskd/internal/queuecmd"
	"github.com/taskd-go/task/cmd/taskd/internal/waittest"
	"github.com/taskd-go/task/internal/programtest"
)

// writeConfig writes a config file.
func writeConfig(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "taskd.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// flagsOf returns the values with which a command would run.
func flagsOf(t *testing.T, args ...string) map[string]string {
	t.Helper()
	root := newCommand().root
	cmd, _, err := root.Find(args)
	require.NoError(t, err)
	values := map[string]string{}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { values[f.Name] = f.Value.String() })
		return nil
	}
	root.SetArgs(args)
	require.NoError(t, root.Execute())
	return values
}

func TestAFlagOverridesItsVariableAndThatTheFile(t *testing.T) {
	path := writeConfig(t, `
name = "app"
workers = 7
max-running = 9
drain-timeout = "1m"
max-memory = "2GiB"
max-package-size = 65536
env = ["PATH", "HOME"]
allow-exec = ["git", "/usr/bin/*"]
log = "json"
`)
	t.Setenv("TASKD_CONFIG", "")
	t.Setenv("TASKD_MAX_RUNNING", "8")
	t.Setenv("TASKD_WORKERS", "6")
	got := flagsOf(t, "serve", "--config", path, "--workers", "5")
	for name, want := range map[string]string{
		"workers": "5", "max-running": "8", "name": "app", "drain-timeout": "1m0s", "max-memory": "2GiB",
		"max-package-size": "64KiB", "env": "PATH,HOME", "allow-exec": "git,/usr/bin/*",
		"log": "json", "start-timeout": "10s",
	} {
		assert.Equal(t, want, got[name], name)
	}
	assert.Equal(t, "app", flagsOf(t, "call", "echo", "--config", path)["name"], "a file is for all commands")
	t.Setenv("TASKD_CONFIG", path)
	assert.Equal(t, "7", flagsOf(t, "serve", "--workers", "7")["workers"])
	assert.Equal(t, "EasySwoole", flagsOf(t, "status", "--config", "")["name"], "no file")
}

func TestTheUsersConfigFileIsTheDefault(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("TASKD_CONFIG", "") // which restores it
	os.Unsetenv("TASKD_CONFIG")
	require.NoError(t, os.Mkdir(filepath.Join(home, "taskd"), 0o700))
	path := filepath.Join(home, "taskd", "config.toml")
	require.NoError(t, os.WriteFile(path, []byte(`name = "mine"`), 0o600))
	assert.Equal(t, "mine", flagsOf(t, "status")["name"])

	require.NoError(t, os.WriteFile(path, []byte(`nmae = "mine"`), 0o600))
	code, _, stderr := programtest.Start(t, t.TempDir(), nil, "status").Wait()
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, path+`: nmae = "mine": there is no such setting`)
	code, stdout, stderr := programtest.Start(t, t.TempDir(), nil, "serve", "--help").Wait()
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "--config", "help can be read beside a broken file")
}

func TestAWrongConfigFileIsRefusedWithFileKeyValueAndRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`wokers = 3`:                                 `: wokers = 3: there is no such setting`,
		"[serve]\nworkers = 3":                       `: serve.workers = 3: there is no such setting`,
		`config = "x"`:                               `: config = "x": there is no such setting`,
		`workers = "3"`:                              `: workers = "3": want a whole number`,
		`workers = 2.5`:                              `: workers = 2.5: want a whole number`,
		`workers = nan`:                              `: workers = NaN: want a whole number`,
		`workers = 0`:                                `: workers = 0: want a whole number from 1 to 512`,
		`workers = 99999999999999999999`:             `line 1`,
		`workers = true`:                             `: workers = true: want a whole number`,
		`drain-timeout = 5`:                          `: drain-timeout = 5: want a text such as "1.5s"`,
		`drain-timeout = "5"`:                        `: drain-timeout = "5": want a duration`,
		`max-memory = "2 pints"`:                     `: max-memory = "2 pints": want at least 0 bytes`,
		`allow-exec = "git"`:                         `: allow-exec = "git": want a list of texts`,
		`allow-exec = ["git,sh"]`:                    `want a list of texts`,
		`env = [1]`:                                  `: env = [1]: want a list of texts`,
		`log = "xml"`:                                `: log = "xml": want raw, text or json`,
		`name = ""`:                                  `: name = "": want a text that is not empty`,
		`dsn = 7`:                                    `: dsn = (not shown): want a text`,
		`dsn = "oracle://u:secret@h"`:                `: dsn: want sqlite:/path/file.db`,
		`dsn = "sqlite:"`:                            `: dsn: want the path`,
		`queue = 7`:                                  `: queue = 7: there is no such setting`,
		"[queue]\ndriver = 7":                        `: queue.driver = 7: want a text`,
		"[queue]\ndriver = \"redis\"":                `: queue.driver = "redis": want database`,
		"[queue]\ntries = 3":                         `: queue.tries = 3: there is no such setting`,
		"[queue.drivers.database]\ntable = ''":       `: queue.drivers.database.table = "": there is no such setting`,
		"[queue.drivers.database]\nconnection = 'x'": `.connection = "x": want a name from the section [connections]`,
		"[connections]\nx = 7":                       `: connections.x = (not shown): want a text`,
		"workers = 1\nworkers = 2":                   `line 2`,
		"name = \"\xff\"":                            `invalid UTF-8`,
		`name =`:                                     `line 1`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			path := writeConfig(t, text)
			code, stdout, stderr := taskd(t, t.TempDir(), "queue", "size", "--config", path)
			assert.Equal(t, cli.ExitUsage, code, stderr)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, path)
			assert.Contains(t, stderr, want)
			assert.Equal(t, 1, strings.Count(stderr, "\n"), "one sentence: %s", stderr)
			assert.NotContains(t, stderr, "secret")
		})
	}
}

func TestAConfigFileThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/nonexistent/taskd.toml": "no such file", t.TempDir(): "is a directory", "/dev/zero": "at most 1048576 bytes",
	} {
		code, _, stderr := taskd(t, t.TempDir(), "queue", "size", "--config", path)
		assert.Equal(t, cli.ExitUsage, code, stderr)
		assert.Contains(t, stderr, path)
		assert.Contains(t, stderr, want)
	}
}

func TestAnErrorOfTheLibraryNamesTheFlagVariableOrKey(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, `name = "a/b"`)
	code, _, stderr := taskd(t, t.TempDir(), "serve", "--config", path)
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, path+`: name = "a/b": it must not contain "/"`)
	_, _, stderr = launch(t, t.TempDir(), []string{"TASKD_NAME=a/b"}, "serve").Wait()
	assert.Contains(t, stderr, `TASKD_NAME="a/b": it must not contain "/"`)
}

func TestTheFileNamesTheDatabase(t *testing.T) {
	t.Parallel()
	one, two := newJobs(t), newJobs(t)
	path := writeConfig(t, `
dsn = "`+one.dsn+`"
[queue]
default_queue = "mail"
[connections]
second = "`+two.dsn+`"
`)
	push := func(env []string, flags ...string) {
		t.Helper()
		args := append([]string{"queue", "push", "exec", "--config", path}, flags...)
		code, _, stderr := launch(t, t.TempDir(), env, args...).Wait()
		require.Zero(t, code, stderr)
	}
	push(nil)
	var mail struct{ Size int }
	one.read(&mail, "size", "--queue", "mail")
	assert.Equal(t, 1, mail.Size, "default_queue is the queue of push")
	push(nil, "--dsn", two.dsn, "--queue", "other")
	assert.Equal(t, 1, two.size().Size, "a flag overrides the file")

	env := []string{"QUEUE_DB_CONNECTION=second", "QUEUE_NAME=sms"}
	push(env)
	assert.Equal(t, 1, one.size().Size)
	assert.Equal(t, 2, two.size().Size, "the environment overrides the file")
	var did queuecmd.Totals
	two.env = env
	two.read(&did, "work", "--once")
	assert.Equal(t, queuecmd.Totals{Dead: 1}, did, "QUEUE_NAME is the queue of work")

	third := []string{"QUEUE_DB_CONNECTION=third"}
	code, _, stderr := launch(t, t.TempDir(), third, "queue", "size", "--config", path).Wait()
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, `QUEUE_DB_CONNECTION="third": want a name from the section [connections]`)
	code, _, stderr = launch(t, t.TempDir(), []string{"QUEUE_DRIVER=sync"}, "queue", "size", "--dsn", one.dsn).Wait()
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, `QUEUE_DRIVER="sync": want database`)
}

func TestWorkersKeepTheSettingsOfAFileThatChanges(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, "workers = 1\nallow-exec = [\"echo\"]\nenv = [\"PATH\"]\n")
	s := servePool(t, nil, "--config", path)
	require.NoError(t, os.WriteFile(path, []byte("no file any more"), 0o600))
	first := s.status()[0].PID
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	waittest.Eventually(t, "another worker serves", func() bool {
		row := s.status()[0]
		return row.Accepting && row.PID != first && row.PID != 0
	})
	assert.Contains(t, s.ok("call", "exec", `{"argv": ["echo", "hi"]}`), `"stdout":"hi\n"`)
}
