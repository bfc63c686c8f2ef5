package sharedstate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/shm"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/tasktype"
)

const limit = time.Minute

// helpers are what the test binary does when it is started again as another
// process, with the table as descriptor 3.
var helpers = map[string]func(f *os.File, args []string) error{
	"work": work,
	"wait": wait,
}

func TestMain(m *testing.M) {
	if name := os.Getenv("TABLE_TEST_HELPER"); name != "" {
		if err := helpers[name](os.NewFile(3, "table"), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work does everything that a worker and a caller do with the table, without end.
func work(f *os.File, args []string) error {
	table, err := Open(f, true)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	r, c := table.WorkerRow(n), NewChooser(table)
	r.SetAccepting(true)
	for i := 0; ; i++ {
		conn := r.ConnOpen()
		id := table.NextTaskID()
		r.ConnRead(conn, id)
		if r.Admit() {
			place := r.Record(id, id, "a task", sys.Now())
			if picked, ok := c.Pick(); ok {
				c.Done(picked)
			}
			r.Forget(place)
			r.Release(Outcome(i % 3))
		}
		r.ConnClose(conn)
		r.SetAccepting(i%8 != 0)
		if i%64 == 0 {
			r.Expired()
			table.Status()
		}
	}
}

// wait waits for a free worker as a caller in another process does.
func wait(f *os.File, _ []string) error {
	table, err := Open(f, false)
	if err != nil {
		return err
	}
	c := NewChooser(table)
	defer c.Close()
	fmt.Println("waiting")
	r, ok := c.PickWait(context.Background(), limit)
	fmt.Println("served", ok, r.Index())
	return nil
}

type helper struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func startHelper(t *testing.T, f *os.File, name string, args ...string) *helper {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TABLE_TEST_HELPER="+name, "GORACE=atexit_sleep_ms=0")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	h := &helper{cmd, bufio.NewReader(out)}
	t.Cleanup(h.kill)
	return h
}

func (h *helper) kill() {
	_ = h.cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, h.out)
	_ = h.cmd.Wait()
}

func (h *helper) line(t *testing.T) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// eventually polls what another process or goroutine brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			require.FailNow(t, "never: "+what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// worksOn waits until the row's process has accepted more than now.
func worksOn(t *testing.T, r testRow, more uint64) {
	t.Helper()
	want := r.Accepted() + more
	eventually(t, fmt.Sprintf("row %d accepts %d more", r.Number(), more), func() bool { return r.Accepted() >= want })
}

func spawnWorker(t *testing.T, table *Parent, index int, generation uint64) (testRow, *helper) {
	t.Helper()
	r := allocate(t, table, index, generation)
	h := startHelper(t, table.File(), "work", strconv.Itoa(r.Number()))
	r.SetPID(h.cmd.Process.Pid)
	table.SetCurrent(index, r.parent)
	return r, h
}

// A process dies holding a shared lock; every process waits. SIGKILL a
// worker inside every table operation, others keep working.
func TestKilledInsideATableOperation_Row4(t *testing.T) {
	table := newTestTable(t, 2, 3)
	survivor, _ := spawnWorker(t, table, 1, 1)
	var accepted uint64
	for g := range uint64(25) {
		r, target := spawnWorker(t, table, 0, 10+g)
		worksOn(t, r, 1+rand.Uint64N(300))
		target.kill()

		r.Finish(End{Reason: tasktype.ReasonKilled, Signal: 9})
		assert.Zero(t, r.Running())
		assert.False(t, r.Accepting())
		assert.LessOrEqual(t, len(r.Tasks()), 1)
		s := table.Status()[0]
		assert.Zero(t, s.PID)
		assert.Equal(t, s.Accepted, s.Success+s.Fail+s.Lost, "generation %d", r.Generation())
		assert.LessOrEqual(t, s.Lost, g+1, "one task at most was running in each")
		assert.Greater(t, s.Accepted, accepted)
		accepted = s.Accepted
		r.Free()
		worksOn(t, survivor, 1)
	}
}

// A stopped worker holds up no other, and its row gets no second owner.
func TestStoppedInsideATableOperation_Row5(t *testing.T) {
	table := newTestTable(t, 2, 3)
	other, _ := spawnWorker(t, table, 1, 1)
	r, stopped := spawnWorker(t, table, 0, 1)
	for range 10 {
		worksOn(t, r, 1+rand.Uint64N(300))
		require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(stopped.cmd.Process.Pid, &ws, syscall.WUNTRACED, nil)
		require.NoError(t, err)
		require.True(t, ws.Stopped())

		worksOn(t, other, 1)
		var rest []ParentRow
		for {
			another, err := table.Allocate(0, 2)
			if err != nil {
				require.ErrorIs(t, err, ErrNoRow)
				break
			}
			require.NotEqual(t, r.Number(), another.Number(), "the stopped one's row has a second owner")
			rest = append(rest, another)
		}
		for _, row := range rest {
			row.Finish(End{Reason: tasktype.ReasonCrashed})
			row.Free()
		}
		require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGCONT))
	}
	worksOn(t, r, 100)
	stopped.kill()
	r.Finish(End{Reason: tasktype.ReasonCrashed})
	s := table.Status()[0]
	assert.Equal(t, s.Accepted, s.Success+s.Fail+s.Lost)
	assert.LessOrEqual(t, s.Lost, uint64(1))
}

func TestAReleaseServesWaitersOfOtherProcesses(t *testing.T) {
	table := newTestTable(t, 1, 1)
	r := serving(t, table, 0, 1)
	require.True(t, r.Admit())
	ro, err := shm.ReadOnly(table.File())
	require.NoError(t, err)
	defer ro.Close()
	killed, waiting := startHelper(t, ro, "wait"), startHelper(t, ro, "wait")
	assert.Equal(t, "waiting", killed.line(t))
	assert.Equal(t, "waiting", waiting.line(t))
	killed.kill()
	r.Release(Succeeded)
	assert.Equal(t, "served true 0", waiting.line(t))
}
