package supervisor

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/internal/testsync"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// A worker waits for its restart: Shutdown does not wait with it.
func TestShutdownDoesNotWaitForTheBackoff_Row37(t *testing.T) {
	flag := t.TempDir() + "/broken"
	t.Setenv(envBehaviour, "if-file "+flag+" exit 1")
	p := startPool(t)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	p.ask(0, "exit 1")
	p.waitEvent("a long backoff", func(e tasktype.Event) bool { return e.Kind == tasktype.EventDegraded })
	began := time.Now()
	require.NoError(t, p.shutdown())
	assert.Less(t, time.Since(began), waitLimit/6)
}

func TestShutdownWaitsForTasks(t *testing.T) {
	p := startPool(t)
	p.ask(0, "task long")
	current, _ := p.Table().Current(0)
	row := p.Table().WorkerRow(current.Number())
	ended := make(chan error)
	go func() { ended <- p.Shutdown(t.Context()) }()
	eventually(t, "it drains", p.Table().Closed)
	select {
	case err := <-ended:
		t.Fatalf("Shutdown returned %v while a task ran", err)
	case <-time.After(50 * time.Millisecond):
	}
	row.Forget(0)
	row.Release(sharedstate.Succeeded)
	require.NoError(t, <-ended)
}

func TestEndOfShutdownsContextStopsTasksAndListsThem(t *testing.T) {
	p := startPool(t, func(c *Config) { c.DrainTimeout = time.Hour })
	p.ask(0, "task main.Sleep")
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			var lost *lifecycle.LostError
			assert.ErrorAs(t, p.Shutdown(context.Background()), &lost)
		})
	}
	eventually(t, "it drains", p.Table().Closed)
	cancel()
	began := time.Now()
	err := p.Shutdown(ctx)
	assert.Less(t, time.Since(began), waitLimit)
	require.ErrorIs(t, err, context.Canceled)
	var lost *lifecycle.LostError
	require.ErrorAs(t, err, &lost)
	require.Len(t, lost.Tasks, 1)
	assert.Equal(t, "main.Sleep", lost.Tasks[0].Task.Name)
	assert.Positive(t, lost.Tasks[0].Task.Age)
	assert.ErrorContains(t, err, "tasks lost at shutdown (1): main.Sleep (task ")
	others.Wait()
	require.ErrorAs(t, p.Shutdown(t.Context()), &lost, "asked again")
}

func TestDrainTimeoutBoundsShutdown(t *testing.T) {
	p := startPool(t, func(c *Config) { c.DrainTimeout = 100 * time.Millisecond })
	p.ask(0, "task stuck")
	var lost *lifecycle.LostError
	require.ErrorAs(t, p.Shutdown(t.Context()), &lost)
}

func TestShutdownRefusesTheBacklogOfADeadIndex(t *testing.T) {
	flag := t.TempDir() + "/broken"
	t.Setenv(envBehaviour, "if-file "+flag+" exit 1")
	e := testEnv()
	var mu sync.Mutex
	refused := make(map[int]int)
	e.refuse = func(l *net.UnixListener, index, _ int, _ time.Duration) {
		_ = l.SetDeadline(time.Now().Add(10 * time.Millisecond))
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			mu.Lock()
			refused[index]++
			mu.Unlock()
		}
	}
	p, err := tryPool(t, e)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	p.ask(0, "exit 1")
	p.waitEvent("a backoff", func(e tasktype.Event) bool { return e.Kind == tasktype.EventDegraded })
	for range 3 {
		c, err := net.Dial("unix", SocketPath(p.cfg.TempDir, "T", 0))
		require.NoError(t, err)
		defer c.Close()
	}
	require.NoError(t, p.shutdown())
	assert.Equal(t, 3, refused[0])
}

func TestOnEventMayShutDown(t *testing.T) {
	var p *testPool
	ended := make(chan error, 1)
	up := make(chan struct{})
	p = startPool(t, func(c *Config) {
		c.OnEvent = func(e tasktype.Event) {
			if e.Kind == tasktype.EventExited && e.Reason == tasktype.ReasonCrashed {
				<-up
				ended <- p.Shutdown(context.Background())
			}
		}
	})
	close(up)
	p.ask(0, "exit 1")
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(waitLimit):
		t.Fatal("Shutdown from OnEvent does not return")
	}
}

func TestSlowOnEventDropsAndCounts(t *testing.T) {
	release := make(chan struct{})
	var got []tasktype.Event
	q := newEventQueue(func(e tasktype.Event) {
		<-release
		got = append(got, e)
	}, slog.New(slog.DiscardHandler))
	for i := range maxEvents + 100 {
		q.put(
			tasktype.Event{
				Kind:   tasktype.EventReady,
				Reason: tasktype.ReasonStarted,
				Worker: tasktype.Worker{Index: i},
			},
		)
	}
	close(release)
	for q.flush(); len(q.waiting) > 0; {
		q.flush()
	}
	q.put(tasktype.Event{Kind: tasktype.EventReady, Reason: tasktype.ReasonStarted, Worker: tasktype.Worker{Index: -1}})
	q.close()
	<-q.ended
	kept := len(got) - 1
	assert.GreaterOrEqual(t, kept, maxEvents)
	dropped := got[0].Dropped
	for i, e := range got[1:kept] {
		assert.Greater(t, e.Worker.Index, got[i].Worker.Index, "in order")
		dropped += e.Dropped
	}
	assert.EqualValues(t, maxEvents+100-kept, dropped+got[kept].Dropped)
}

func TestLoggedOutputIsTagged(t *testing.T) {
	var buf testsync.Buffer
	p := startPool(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&buf, nil)) })
	pid := p.ask(0, "who")
	p.ask(0, "print hello")
	eventually(t, "the line is logged", func() bool {
		return strings.Contains(buf.String(), "msg=hello worker=0 pid="+pid+" stream=stdout")
	})
}

func TestLoggedLinesAreCut(t *testing.T) {
	var buf testsync.Buffer
	logger := slog.New(slog.NewTextHandler(&buf, nil))
	events := newEventQueue(nil, slog.New(slog.DiscardHandler))
	o := openOutputs(Config{Logger: logger}, events)
	long := strings.Repeat("x", maxLine+10) + "\nnext\nand the last without an end"
	o.copy(strings.NewReader(long), stream{3, 7, "stderr"}, &tail{}, nil)
	o.close()
	events.close()
	<-events.ended
	lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
	require.Len(t, lines, 4)
	assert.Contains(t, lines[0], "msg="+strings.Repeat("x", maxLine)+" worker=3 pid=7 stream=stderr")
	assert.Contains(t, lines[1], "msg=xxxxxxxxxx worker=3")
	assert.Contains(t, lines[2], "msg=next ")
	assert.Contains(t, lines[3], `msg="and the last without an end"`)
}

func TestAttachReadsTheTableUntilThePoolEnds(t *testing.T) {
	p := startPool(t)
	a, err := Attach(t.Context(), p.cfg.TempDir, "T")
	require.NoError(t, err)
	assert.Equal(t, p.cfg.Settings, a.Settings)
	assert.Equal(t, p.pid(1), a.Table.Status()[1].PID)
	select {
	case <-a.Gone:
		t.Fatal("gone while the pool lives")
	default:
	}
	require.NoError(t, p.shutdown())
	<-a.Gone
	require.NoError(t, a.Close())
	_, err = Attach(t.Context(), p.cfg.TempDir, "T")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAttachmentCanBeClosed(t *testing.T) {
	p := startPool(t)
	a, err := Attach(t.Context(), p.cfg.TempDir, "T")
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

// Connections to the pool's socket that say nothing or garbage do no harm.
func TestSilentAndGarbageClientsHarmNothing_Row78(t *testing.T) {
	p := startPool(t)
	for i := range 200 {
		c, err := net.Dial("unix", poolSocketPath(p.cfg.TempDir, "T"))
		require.NoError(t, err)
		defer c.Close()
		if i%2 == 0 {
			_, _ = c.Write([]byte(strings.Repeat("\xff", 1000)))
		}
	}
	a, err := Attach(t.Context(), p.cfg.TempDir, "T")
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

func TestRemovedPoolSocketIsBack_Row17(t *testing.T) {
	p := startPool(t)
	require.NoError(t, os.Remove(poolSocketPath(p.cfg.TempDir, "T")))
	eventually(t, "attaching works again", func() bool {
		a, err := Attach(t.Context(), p.cfg.TempDir, "T")
		if err != nil {
			return false
		}
		return assert.NoError(t, a.Close())
	})
}
