package worker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/taskd-go/task/protocol"
)

func limited(soft, hard chan Overdue) func(*rig) {
	return func(r *rig) {
		r.cfg.OnSoftLimit = func(o Overdue) { soft <- o }
		r.cfg.OnHardLimit = func(o Overdue) { hard <- o }
	}
}

// riverqueue/river #1097: a task ignores its context; the slot is gone for good, unseen.
// After the soft limit there are an event and a dump, after the hard limit the caller has its
// answer and the parent knows.
func TestLimitsAreTold_Row56(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprintf("alone %t", alone), func(t *testing.T) {
			soft, hard := make(chan Overdue, 10), make(chan Overdue, 10)
			r := start(t, limited(soft, hard))
			p := r.dial()
			id := p.send(
				protocol.Package{
					Task:  []byte("block"),
					Alone: alone,
					Soft:  30 * time.Millisecond,
					Hard:  90 * time.Millisecond,
				},
			)
			task := r.awaitEntered()
			got := <-soft
			require.Contains(t, string(got.Dump), "goroutine ")
			require.Contains(t, string(got.Dump), "register.func") // where it hangs
			got.Dump = nil
			started := r.row.Tasks()[0].Started
			require.InDelta(t, started, got.Started, float64(waitLimit))
			require.Equal(t, Overdue{task.TaskID, "block", 30 * time.Millisecond, got.Started, nil}, got)
			require.Equal(t, Overdue{task.TaskID, "block", 90 * time.Millisecond, got.Started, nil}, <-hard)

			answer := p.next()
			require.Equal(t, id, answer.ID)
			require.Equal(t, protocol.StatusTaskError, answer.Status)
			require.True(t, strings.HasPrefix(answer.Text(), "time limit"), answer.Text())
			require.False(t, r.row.Accepting())
			require.Equal(t, 1, r.row.Running(), "it holds its slot")
			require.Len(t, r.row.Tasks(), 1)

			close(r.gate)
			require.Equal(t, count{accepted: 1, success: 1}, r.still())
			p.works() // and the late result was dropped
			require.Empty(t, soft)
			require.Empty(t, hard)
		})
	}
}

// roadrunner #560: the hard limit does not kill. A busy loop that never yields: the caller has
// its -5 while the loop runs.
func TestHardLimitOfABusyLoop_Row54(t *testing.T) {
	soft, hard := make(chan Overdue, 10), make(chan Overdue, 10)
	r := start(t, func(r *rig) {
		limited(soft, hard)(r)
		r.cfg.TimeLimit = 200 * time.Millisecond
	})
	var stop atomic.Bool
	r.add("spin", func(context.Context, Info) (any, error) {
		for !stop.Load() {
		}
		return nil, nil
	})
	p := r.dial()
	answer := p.call(protocol.Package{Task: []byte("spin"), Hard: time.Hour})
	require.True(t, strings.HasPrefix(answer.Text(), "time limit"), answer.Text())
	<-hard
	stop.Store(true)
	r.still()
}

// WeKnora #3462: the slot of a cancelled task that ignores its context never returns, unseen.
// It stays in running, among the in-flight records, and is freed by its end.
func TestStuckTaskIsVisible_Row9(t *testing.T) {
	soft, hard := make(chan Overdue, 10), make(chan Overdue, 10)
	r := start(t, limited(soft, hard))
	p := r.dial()
	require.True(
		t,
		p.call(protocol.Package{Task: []byte("block"), Type: protocol.Async, Hard: 30 * time.Millisecond}).OK,
	)
	id := r.awaitEntered().TaskID
	require.Equal(t, id, (<-hard).TaskID)
	require.Equal(t, id, r.row.Tasks()[0].TaskID)
	require.Equal(t, "block", r.row.Tasks()[0].Name)
	close(r.gate)
	r.still()
}

func TestSoftLimitEndsTheContext(t *testing.T) {
	for name, tt := range map[string]struct{ own, pools time.Duration }{
		"of the call":              {own: 30 * time.Millisecond},
		"of the pool":              {pools: 30 * time.Millisecond},
		"the smaller, of the call": {own: 30 * time.Millisecond, pools: time.Hour},
		"the smaller, of the pool": {own: time.Hour, pools: 30 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			soft, hard := make(chan Overdue, 10), make(chan Overdue, 10)
			r := start(t, func(r *rig) {
				limited(soft, hard)(r)
				r.cfg.SoftTimeLimit = tt.pools
			})
			p := r.dial()
			// A later limit must not hide the earlier one.
			p.send(
				protocol.Package{Task: []byte("block"), Soft: time.Hour, Hard: 2 * time.Hour},
				protocol.Package{Task: []byte("obedient"), Soft: tt.own},
			)
			require.Equal(t, ErrSoftLimit.Error(), p.said())
			require.Equal(t, 30*time.Millisecond, (<-soft).Limit)
			close(r.gate)
		})
	}
}

// apache/iggy PR #3429: a duration of zero means "disabled" in the configuration but "fail now"
// in the code. Zero and negative limits are none, huge ones do not overflow.
func TestZeroLimitIsNone_Row53(t *testing.T) {
	const forever = 1<<63 - 1
	for name, tt := range map[string]struct {
		a, b time.Duration
		want int64
	}{
		"none":     {0, 0, 0},
		"negative": {-1, -1, 0},
		"first":    {5, 0, 105},
		"second":   {0, 5, 105},
		"smaller":  {7, 5, 105},
		"huge":     {forever, 0, forever},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, limitEnd(100, tt.a, tt.b)) })
	}
}

// apache amoro PR #4296: counters drift. The audit compares the in-flight records with running
// every second, while tasks run.
func TestAuditFindsDrift_Row10(t *testing.T) {
	drift := make(chan [2]int, 10)
	r := start(t, func(r *rig) { r.cfg.OnDrift = func(records, running int) { drift <- [2]int{records, running} } })
	p := r.dial()
	p.send(protocol.Package{Task: []byte("block")})
	r.awaitEntered()
	require.True(t, r.cfg.Row.Admit()) // a slot that is never released
	require.Equal(t, [2]int{1, 2}, <-drift)
	r.cfg.Row.Release(0)
	close(r.gate)
	r.still()
	r.eventually("nothing is armed while idle", func() bool {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		return r.server.watch == schedule{}
	})
	require.LessOrEqual(t, len(drift), 1)
}

// roadrunner #1953: timers across a suspended CPU. The time in which a process is stopped is not
// the task's: a watch that wakes far too late gives the limits more time, once.
func TestSuspendedTimeIsNotTheTasks_Row30(t *testing.T) {
	soft, hard := make(chan Overdue, 10), make(chan Overdue, 10)
	r := start(t, limited(soft, hard))
	p := r.dial()
	p.send(protocol.Package{Task: []byte("block"), Soft: time.Minute, Hard: 2 * time.Minute})
	r.awaitEntered()
	r.server.mu.Lock()
	due := r.server.watch.wakeAt
	r.server.mu.Unlock()
	now := due + int64(time.Hour)
	next := r.server.sweep(now)
	require.Empty(t, soft)
	require.Empty(t, hard)
	for end := now + int64(3*time.Minute); next != 0 && next < end; {
		next = r.server.sweep(next)
	}
	require.Equal(t, time.Minute, (<-soft).Limit)
	require.Equal(t, 2*time.Minute, (<-hard).Limit)
	close(r.gate)
}

// A worker out of descriptors goes on accepting once it has some; the connection waits in the
// backlog.
func TestAcceptWithoutDescriptors(t *testing.T) {
	suspect := make(chan error, 100)
	r := start(t, func(r *rig) { r.cfg.OnSuspect = func(err error) { suspect <- err } })
	r.dial().works()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	restore := func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }
	defer restore()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	require.NoError(t, unix.Connect(fd, &unix.SockaddrUnix{Name: r.path}))
	require.ErrorIs(t, <-suspect, syscall.EMFILE, "ten failures in a row are told")
	restore()
	buf := make([]byte, 512)
	n, err := unix.Read(fd, buf)
	require.NoError(t, err)
	require.NotZero(t, n, "the greeting")
	r.dial().works()
}

// A drain waits for neighbours, and not for what is past its hard limit.
func TestDrainLeavesOverdueTasks(t *testing.T) {
	for name, pkg := range map[string]protocol.Package{
		"on its connection's goroutine": {Task: []byte("block"), Alone: true, Hard: 20 * time.Millisecond},
		"on one of its own":             {Task: []byte("block"), Hard: 20 * time.Millisecond},
		"asynchronous":                  {Task: []byte("block"), Type: protocol.Async, Hard: 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			soft, hard := make(chan Overdue, 10), make(chan Overdue, 10)
			r := start(t, limited(soft, hard))
			leave := make(chan struct{})
			r.add("neighbour", func(_ context.Context, info Info) (any, error) {
				r.entered <- info
				<-leave
				return nil, nil
			})
			neighbour, stuck := r.dial(), r.dial()
			id := neighbour.send(protocol.Package{Task: []byte("neighbour")})
			r.awaitEntered()
			stuck.send(pkg)
			overdue := r.awaitEntered().TaskID
			<-hard
			r.begin(-1)
			close(leave)
			require.True(t, neighbour.answer(id).OK)
			require.ErrorContains(t, r.ended(), fmt.Sprint(overdue))
			close(r.gate)
			r.still()
		})
	}
}
