package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

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

// demoOf runs the demo to its end.
func demoOf(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return programtest.Start(t, dir, nil, args...).Wait()
}

func TestDemoHashesEachFileOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, 20, 1000)
	code, stdout, stderr := demoOf(t, dir, "-list", "-workers", "2")
	require.Zero(t, code, stderr)
	for i := range 20 {
		name := fmt.Sprintf("file%03d", i)
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(stdout, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)), name)
	}
	assert.Contains(t, stdout, "Hashing 20 files below ., 4 at once\n")
	assert.Contains(t, stdout, "  10 of 20", "plain lines where there is no terminal")
	assert.NotContains(t, stdout, "\r")
	assert.Regexp(t, `(?m)^20 files, \d+ lines, 19.5 KiB, compressed `, stdout)
	workers := pidColumn.FindAllStringSubmatch(stdout, -1)
	require.Len(t, workers, 2)
	for _, w := range workers {
		pid, err := strconv.Atoi(w[1])
		require.NoError(t, err)
		assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "a worker is left")
	}
}

func TestDemoSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	_, stdout, _ := demoOf(t, folder(t, 20, 1000), "-workers", "2")
	inOrder := regexp.MustCompile(`(?s)Starting 2 workers.*Hashing.*10 of 20, tasks in the workers: \d \d.*` +
		`status.*Next: .*-kill.*Read on: README.md`)
	assert.Regexp(t, inOrder, stdout)
	for i := range 2 {
		assert.Regexp(t, fmt.Sprintf(`worker %d \(pid \d+\) is ready`, i), stdout)
	}
}

func TestDemoLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := folder(t, 1, 10)
	_, _, stderr := demoOf(t, dir)
	assert.Empty(t, stderr)
	left, err := filepath.Glob(filepath.Join(dir, "*.sock"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestDemoHealsAfterAKill(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := demoOf(t, folder(t, 60, 1<<17), "-kill")
	require.Zero(t, code, stdout+stderr)
	assert.Regexp(t, `worker \d \(pid \d+\) is gone, killed, with \d tasks? unfinished`, stdout)
	assert.Regexp(t, `Worker \d \(pid \d+\) was killed with SIGKILL; its successor \(pid \d+\) accepted after \d`, stdout)
	assert.Regexp(t, `Delivery: (may have|not) run`, stdout)
	assert.Contains(t, stdout, "The demo sent these files again")
	assert.Contains(t, stdout, "signal 9")
	assert.Regexp(t, `(?m)^60 files, `, stdout, "no file is missing")
}

func TestDemoEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, folder(t, 200, 1<<17), nil)
	p.Line("20 of 200")
	p.Signal(syscall.SIGINT)
	code, _, stderr := p.Wait()
	assert.Equal(t, exitInterrupted, code)
	assert.Equal(t, "demo: interrupted\n", stderr)
}

func TestDemoOfNoFolder(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := demoOf(t, t.TempDir(), "nowhere")
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "nowhere")
}

func TestDemoRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no workers":   {[]string{"-workers", "0"}, "from 1 to 512"},
		"two folders":  {[]string{"a", "b"}, "demo takes one folder"},
		"no such flag": {[]string{"-kil"}, "Usage: "},
	} {
		code, stdout, stderr := demoOf(t, t.TempDir(), c.args...)
		assert.Equal(t, exitUsage, code, name)
		assert.Empty(t, stdout, name)
		assert.Contains(t, stderr, c.want, name)
	}
}

// The demo is the first command of the README: it compiles little more than net/http.
func TestDemoCompilesFewModules(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	out, err := list.Output()
	require.NoError(t, err)
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	assert.Equal(t, []string{
		"github.com/taskd-go/task",
		"github.com/vmihailenco/msgpack/v5",
		"github.com/vmihailenco/tagparser/v2",
		"golang.org/x/sys",
	}, modules)
}

// A fakePool answers digest calls with the errors that it is given, one after another, then with
// success.
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
		errs                []error
		files, lost, failed int
	}{
		"a success":           {nil, 1, 0, 0},
		"not run, then fine":  {[]error{notRun}, 1, 1, 0},
		"lost, then fine":     {[]error{mayHaveRun, notRun}, 1, 2, 0},
		"a file that fails":   {[]error{ran}, 0, 0, 1},
		"lost, then it fails": {[]error{mayHaveRun, ran}, 0, 1, 1},
		"lost too often":      {[]error{notRun, notRun, notRun, notRun, notRun}, 0, attempts - 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := &demo{pool: &fakePool{errs: c.errs}}
			d.send(t.Context(), "file")
			assert.Equal(t, c.files, d.files)
			assert.Len(t, d.lost, c.lost)
			assert.Len(t, d.failed, c.failed)
		})
	}
}

func TestBarFitsItsLine(t *testing.T) {
	assert.Equal(t, "[###############...............] 5/10 name", bar(5, 10, 80, " name"))
	assert.Len(t, bar(10, 10, 40, strings.Repeat("n", 100)), 39)
	assert.NotPanics(t, func() { bar(0, 0, 1, "") })
}

func TestProgressDrawsPlainLinesElsewhere(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 25, func() []task.WorkerStatus { return []task.WorkerStatus{{Running: 2}, {}} })
	half := p.reached(12)
	for range 25 {
		p.add("name")
	}
	<-half
	p.end()
	assert.Equal(t, 13, strings.Count(out.String(), " of 25, tasks in the workers: 2 0\n"))
}
