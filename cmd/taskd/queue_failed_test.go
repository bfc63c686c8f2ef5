package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

func TestRetryingSomeDoesNotStopAtAnUnknownOne(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.fail("exit 3")
	code, stdout, stderr := j.run("retry", "99", "1")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stdout, "dead letter 1 is back")
	assert.Contains(t, stderr, "99")
	assert.Equal(t, 1, j.size().Ready)
}

func TestRetryOfAllAsksWhenOneErrorDominates(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.fail("exit 3")
	j.fail("exit 4")
	code, _, stderr := j.run("retry", "--all")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, "2 of 2 dead letters have the error *builtin.ExitError")
	assert.Contains(t, stderr, "send 2 again: not without --yes")
	_, _, stderr = j.run("retry", "--all", "--limit", "1")
	assert.Contains(t, stderr, "send 1 again")
	assert.Len(t, j.failed(), 2)

	assert.Contains(t, j.ok("retry", "--all", "--dry-run"),
		"2 × *builtin.ExitError\n2 dead letters would be sent again")
	assert.Len(t, j.failed(), 2)
}

func TestRetryOfAllTakesWhatItsFiltersChoose(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.fail("exit 3")
	j.fail("exit 3", "--queue", "default")
	j.push("x", "--tries", "1")
	j.ok("push", "ftp", "{}")
	j.work("--once")
	require.Len(t, j.failed(), 4)
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"a type":           {[]string{"--type", "ftp"}, "1 dead letters would"},
		"two types":        {[]string{"--type", "ftp,exec"}, "4 dead letters would"},
		"a class":          {[]string{"--error-class", "*builtin.ExitError"}, "3 dead letters would"},
		"a limit":          {[]string{"--limit", "2"}, "2 dead letters would"},
		"the last hour":    {[]string{"--since", "1h"}, "4 dead letters would"},
		"before that":      {[]string{"--until", "1h"}, "0 dead letters would"},
		"another queue":    {[]string{"--queue", "mail"}, "0 dead letters would"},
		"a time in full":   {[]string{"--since", "2001-01-01T00:00:00Z"}, "4 dead letters would"},
		"with a slow rate": {[]string{"--rate", "0.5"}, "4 dead letters would"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, j.ok(append([]string{"retry", "--all", "--dry-run"}, c.flags...)...), c.want)
		})
	}
	j.ok("retry", "--all", "--type", "ftp")
	assert.Len(t, j.failed(), 3)
}

func TestPruneRemovesOldDeadLetters(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.fail("exit 3")
	assert.Equal(t, "0 dead letters removed", j.ok("prune", "--older-than", "1h"))
	assert.Equal(t, "1 dead letters removed", j.ok("prune", "--older-than", "0"))
}

func TestRetryOfAllNamesWhatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	j.fail("exit 3")
	j.fail("exit 4")
	j.fail("exit 5")
	db, err := sqlite.Open(t.Context(), strings.TrimPrefix(j.dsn, "sqlite:"), sqlite.DurabilityNormal)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Write.ExecContext(t.Context(), `CREATE TRIGGER refuse BEFORE INSERT ON jobs
		WHEN NEW.payload LIKE '%exit 4%' BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
	require.NoError(t, err)
	code, stdout, stderr := j.run("retry", "--all", "--yes")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stdout, "2 dead letters are back in their queues")
	assert.Contains(t, stderr, "dead letter 2 stays: ")
	assert.Contains(t, stderr, "not this one")
	letters := j.failed()
	require.Len(t, letters, 1)
	assert.Equal(t, "2", letters[0].ID)
	assert.Equal(t, 2, j.size().Ready)
}
