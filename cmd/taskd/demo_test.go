package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

// folder makes n files of size random bytes, and what the demo must leave out.
func folder(t *testing.T, n, size int) string {
	t.Helper()
	dir := t.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	for i := range n {
		content := make([]byte, size)
		_, _ = random.Read(content)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%03d", i)), content, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "HEAD"), nil, 0o600))
	require.NoError(t, os.Symlink("file000", filepath.Join(dir, "link")))
	return dir
}

// pidColumn finds the workers in the demo's table.
var pidColumn = regexp.MustCompile(`(?m)^ +\d+ +(\d+) `)

func TestDemoHashesEachFileOnce(t *testing.T) {
	dir := folder(t, 20, 1000)
	code, stdout, stderr := taskd(t, dir, "demo", "--list", "--workers", "2")
	require.Zero(t, code, stderr)
	for i := range 20 {
		name := fmt.Sprintf("file%03d", i)
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(stdout, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)), name)
	}
	assert.Contains(t, stdout, "20 files, 2 workers\n")
	assert.Contains(t, stdout, "10 of 20\n", "plain lines where there is no terminal")
	assert.NotContains(t, stdout, "\r")
	assert.Regexp(t, `(?m)^20 files, \d+ lines, 19.5 KiB, compressed `, stdout)
	workers := pidColumn.FindAllStringSubmatch(stdout, -1)
	require.Len(t, workers, 2)
	for _, w := range workers {
		assertGone(t, atoi(t, w[1]))
	}
}

func TestDemoLeavesNothingBehind(t *testing.T) {
	dir := folder(t, 1, 10)
	_, _, stderr := taskd(t, dir, "demo")
	assert.Empty(t, stderr)
	left, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestDemoHealsAfterAKill(t *testing.T) {
	code, stdout, stderr := taskd(t, folder(t, 60, 1<<17), "demo", "--kill")
	require.Zero(t, code, stdout+stderr)
	assert.Regexp(t, `worker \d \(pid \d+\) was killed with SIGKILL; its successor \(pid \d+\) accepted after \d`, stdout)
	assert.Contains(t, stdout, "demo sent their files again")
	assert.Contains(t, stdout, "signal 9")
	assert.Regexp(t, `(?m)^60 files, `, stdout, "no file is missing")
}

func TestDemoEndsWithCtrlC(t *testing.T) {
	dir := folder(t, 200, 1<<17)
	p := launch(t, dir, "demo")
	p.line("20 of 200")
	p.signal(syscall.SIGINT)
	code, _, stderr := p.wait()
	assert.Equal(t, exitInterrupted, code)
	assert.Equal(t, "taskd: interrupted\n", stderr)
}

func TestDemoOfNoFolder(t *testing.T) {
	code, stdout, stderr := taskd(t, t.TempDir(), "demo", "nowhere")
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "nowhere")
}

// A fakePool answers digest calls with the errors that it is given, one after another, then with success.
type fakePool struct {
	task.Caller
	errs []error
}

func (f *fakePool) Sync(context.Context, task.Runner, ...task.CallOption) (task.Result, error) {
	if len(f.errs) == 0 {
		return task.Result{}, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return task.Result{}, err
}

func TestDemoSendsAgainWhatMayBeLost(t *testing.T) {
	notRun := &task.Error{Status: task.ErrProcessBusy, Delivery: task.NotRun}
	mayHaveRun := &task.Error{Status: task.ErrSockTimeout, Delivery: task.MayHaveRun}
	ran := &task.Error{Status: task.ErrTask, Delivery: task.Ran}
	for name, c := range map[string]struct {
		errs                 []error
		files, again, failed int
	}{
		"a success":           {nil, 1, 0, 0},
		"not run, then fine":  {[]error{notRun}, 1, 1, 0},
		"lost, then fine":     {[]error{mayHaveRun, notRun}, 1, 2, 0},
		"a file that fails":   {[]error{ran}, 0, 0, 1},
		"lost, then it fails": {[]error{mayHaveRun, ran}, 0, 1, 1},
		"lost too often":      {[]error{notRun, notRun, notRun, notRun, notRun}, 0, attempts - 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := &demo{calls: &fakePool{errs: c.errs}}
			d.send(t.Context(), "file")
			assert.Equal(t, c.files, d.files)
			assert.Len(t, d.again, c.again)
			assert.Len(t, d.failed, c.failed)
		})
	}
}

func TestBarFitsItsLine(t *testing.T) {
	assert.Equal(t, "[###############...............] 5/10 name", bar(5, 10, 80, "name"))
	assert.Len(t, bar(10, 10, 40, strings.Repeat("n", 100)), 39)
	assert.NotPanics(t, func() { bar(0, 0, 1, "") })
}

func TestProgressDrawsPlainLinesElsewhere(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 25)
	half := p.reached(12)
	for range 25 {
		p.add("name")
	}
	<-half
	p.end()
	assert.Equal(t, 13, strings.Count(out.String(), " of 25\n"))
}
