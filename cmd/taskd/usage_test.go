package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/builtin"
	"github.com/taskd-go/task/cmd/taskd/internal/cli"
)

// A refusal is a command line, with ” for an empty argument, and what the error says.
type refusal struct{ line, want string }

// areRefused checks that wrong usage is one sentence, starts nothing and shows no password.
func areRefused(t *testing.T, cases map[string]refusal) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := strings.Split(c.line, " ")
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "''", "")
			}
			code, stdout, stderr := taskd(t, dir, args...)
			assert.Equal(t, cli.ExitUsage, code, stderr)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, c.want)
			assert.Equal(t, 1, strings.Count(stderr, "\n"), "one sentence: %s", stderr)
			assert.NotContains(t, stderr, "secret")
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

func TestWrongUsageIsOneSentenceAndStartsNothing(t *testing.T) {
	t.Parallel()
	long := filepath.Join("/tmp", strings.Repeat("d", 101-len("/tmp//EasySwoole.TaskWorker.0.sock")))
	areRefused(t, map[string]refusal{
		"no such flag":                {"serve --wokers 3", "unknown flag: --wokers"},
		"an argument too many":        {"serve now", `serve takes no arguments, and got "now"`},
		"explicit 0 workers":          {"serve --workers 0", "from 1 to 512"},
		"negative workers":            {"serve --workers -1", "from 1 to 512"},
		"513 workers":                 {"serve --workers 513", "from 1 to 512"},
		"half a worker":               {"serve --workers 1.5", "from 1 to 512"},
		"explicit 0 running":          {"serve --max-running 0", "from 1 to"},
		"511 bytes":                   {"serve --max-package-size 511", "at least 512"},
		"explicit 0 bytes":            {"serve --max-package-size 0", "at least 512"},
		"a time of NaN":               {"serve --push-timeout NaN", "want a duration"},
		"a time of NaN seconds":       {"serve --push-timeout NaNs", "want a duration"},
		"an infinite time":            {"serve --drain-timeout +Inf", "want a duration"},
		"a time without a unit":       {"serve --drain-timeout 5", "want a duration"},
		"a time that overflows":       {"serve --drain-timeout 10000000h", "want a duration"},
		"explicit 0 push timeout":     {"serve --push-timeout 0", "not 0; negative for no limit"},
		"explicit 0 drain timeout":    {"serve --drain-timeout 0s", "not 0; negative for no limit"},
		"explicit 0 start timeout":    {"serve --start-timeout 0", "more than 0"},
		"a negative start timeout":    {"serve --start-timeout -1s", "more than 0"},
		"a negative time limit":       {"serve --time-limit -1s", "0 or more"},
		"a negative memory limit":     {"serve --max-memory -1", "want at least 0 bytes"},
		"a soft limit above the hard": {"serve --soft-time-limit 2s --time-limit 1s", "--soft-time-limit 2s"},
		"an empty name":               {"serve --name ''", "not empty"},
		"a name with a slash":         {"serve --name a/b", `--name "a/b": it must not contain "/"`},
		"an empty folder":             {"serve --dir ''", "not empty"},
		"a folder that is not there":  {"serve --dir /nonexistent", "--dir /nonexistent: "},
		"a socket path of 101 bytes":  {"serve --dir " + long + " --workers 1", "has 101 bytes and the limit is 100"},
		"no such built-in task":       {"serve --tasks echo,ecko", `no built-in task is named "ecko"`},
		"a broken pattern":            {"serve --allow-exec [a", "want patterns"},
		"no such log format":          {"serve --log xml", "want raw, text or json"},
		"arguments that are not JSON": {"call echo {", "the arguments are not JSON"},
		"a time of NaN for a call":    {"call echo --timeout NaN", "want a duration"},
		"a negative wait":             {"call echo --wait -1s", "0 or more"},
		"a call without a task":       {"call", "call needs TASK [JSON]; see taskd call --help"},
		"an async of three arguments": {"async a 1 2", "async needs TASK [JSON]; see taskd async --help"},
		"completion for no shell":     {"completion nosh", "completion needs a shell, bash, zsh, fish or powershell"},
		"watching without a pause":    {"status --watch --every 0", "more than 0"},
	})
}

func TestWrongUsageOfTheQueueIsOneSentenceAndStartsNothing(t *testing.T) {
	t.Parallel()
	areRefused(t, map[string]refusal{
		"no such queue command":       {"queue wrok", `unknown command "wrok" for "taskd queue"`},
		"no such database":            {"queue size --dsn oracle://u:secret@h", "want sqlite:/path/file.db"},
		"no path of a file":           {"queue size --dsn sqlite:", "want the path"},
		"a payload that is not JSON":  {"queue push exec {", "not JSON"},
		"a payload that is a number":  {"queue push exec 7", "object or array"},
		"a database in memory":        {"queue size --dsn sqlite::memory:", "want the path of a file"},
		"not a URL":                   {"queue size --dsn postgres://u:se%zzcret@h/x", "--dsn: not a URL"},
		"half a URL":                  {"queue size --dsn postgres:", "want sqlite:"},
		"a port above 65535":          {"queue size --dsn mysql://u:secret@h:99999/x", "from 1 to 65535"},
		"a server without a database": {"queue size --dsn mysql://u:secret@h", "want the name of a database"},
		"a queue not in UTF-8":        {"queue push exec --queue \xff", "1 to 191 bytes in UTF-8"},
		"a queue of 192 bytes":        {"queue pause --queue " + strings.Repeat("q", 192), "1 to 191 bytes in UTF-8"},
		"a key not in UTF-8":          {"queue push exec --unique \xff", "1 to 191 bytes in UTF-8"},
		"a filter not in UTF-8":       {"queue failed --type \xff", "want texts in UTF-8"},
		"a queue without a name":      {"queue work --queue a,,b", "different names"},
		"a weight of 0":               {"queue work --queue a:0", "a weight must be"},
		"a push without a type":       {"queue push", "push needs TYPE [JSON]; see taskd queue push --help"},
		"a cancel without an id":      {"queue cancel", "cancel needs one ID"},
		"a restart with an argument":  {"queue restart all", `restart takes no arguments, and got "all"`},
		"no such priority":            {"queue push exec --priority 4", "low, normal, high or urgent"},
		"a priority in capitals":      {"queue push exec --priority URGENT", "low, normal, high or urgent"},
		"a table with a dash":         {"queue size --table-prefix a-b", `table name "a-bjobs"`},
		"a table without a name":      {"queue size --jobs-table ''", "not empty"},
		"a long table":                {"queue size --jobs-table " + strings.Repeat("j", 49), "at most 48 bytes"},
		"one name for two tables":     {"queue size --jobs-table x --failed-table X", "not be that of another table"},
		"zero tries":                  {"queue push exec --tries 0", "from 1 to"},
		"no concurrency":              {"queue work --concurrency 0", "from 1 to 512"},
		"a lease of 0":                {"queue work --lease 0", "100ms or more"},
		"nothing to retry":            {"queue retry", "ids of dead letters, or --all"},
		"ids and all to retry":        {"queue retry 1 --all", "ids of dead letters, or --all"},
		"a filter without all":        {"queue retry 1 --type exec", "--type needs --all"},
		"a rate of NaN":               {"queue retry --all --rate NaN", "at least 0"},
		"not a time":                  {"queue failed --since yesterday", "want a time such as"},
		"pruning without an age":      {"queue prune", "want --older-than"},
	})
}

func TestUnknownCommandSuggestsAnother(t *testing.T) {
	t.Parallel()
	code, _, stderr := taskd(t, t.TempDir(), "sevre")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, `unknown command "sevre"`)
	assert.Contains(t, stderr, "\tserve\n")
}

func TestEveryCommandTeachesByExample(t *testing.T) {
	t.Parallel()
	root := newCommand().root
	var look func(*cobra.Command)
	look = func(parent *cobra.Command) {
		for _, cmd := range parent.Commands() {
			if cmd.Runnable() && cmd.IsAvailableCommand() {
				assert.Contains(t, cmd.Example, cmd.CommandPath(), cmd.CommandPath())
				assert.NotEmpty(t, cmd.Long, cmd.CommandPath())
			}
			look(cmd)
		}
	}
	look(root)
}

func TestHelpNamesEveryExitCode(t *testing.T) {
	t.Parallel()
	help := helpOf(t, "--help")
	for _, code := range []string{"\n  0 ", "\n  1 ", "\n  2 ", "\n  3 ", "\n  4 ", "\n  5 ", "\n  6 ", "\n  130 "} {
		assert.Contains(t, help, code)
	}
}

func TestShellsCompleteTheBuiltInTasks(t *testing.T) {
	t.Parallel()
	got := helpOf(t, cobra.ShellCompNoDescRequestCmd, "call", "")
	for _, name := range builtin.TaskNames() {
		assert.Contains(t, got, name+"\n")
	}
	assert.Contains(t, helpOf(t, "completion", "bash"), "bash completion")
}

func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(args, &stdout, &stderr), stderr.String())
	return stdout.String()
}
