package lifecycle

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// A script drives a machine by hand; what it wants done is kept.
type script struct {
	t    *testing.T
	m    *Machine
	now  time.Time
	acts []Action
}

// newScript returns a pool whose workers all serve.
func newScript(t *testing.T, l Limits) *script {
	l.StartTimeout = 10 * time.Second
	l.MaxReplacing = max(l.MaxReplacing, 1)
	s := &script{t: t, now: time.Unix(1e9, 0)}
	s.m = New(l, func() float64 { return 0.5 })
	s.do(StartWanted{})
	for i := range l.Workers {
		s.boot(i)
	}
	require.Equal(t, running, s.m.phase)
	return s
}

func (s *script) do(ev Input) []Action {
	s.acts = s.m.Step(s.now, ev)
	return s.acts
}

func (s *script) say(p *process, m control.Message) []Action {
	return s.do(Received{Key: p.Key, Message: m})
}

// boot lets the successor of an index come up, as far as it may.
func (s *script) boot(index int) *process {
	p := s.m.slots[index].next
	require.NotNil(s.t, p, "nothing boots")
	s.do(Spawned{p.Key, int(p.Generation) + 100})
	s.say(p, control.Message{Kind: control.KindReady})
	s.say(p, control.Message{Kind: control.KindAccepting})
	return p
}

// pass lets d pass, with all ticks in it.
func (s *script) pass(d time.Duration) (all []Action) {
	end := s.now.Add(d)
	for {
		at := s.m.Wake()
		if at.IsZero() || at.After(end) {
			s.now = end
			return all
		}
		s.now = at
		all = append(all, s.do(Tick{})...)
	}
}

func (s *script) serving(index int) *process { return s.m.slots[index].serving }

func (s *script) die(p *process) []Action {
	return s.do(Exited{p.Key, Exit{Code: 1, Known: true}})
}

// delay returns how long after now the index starts again.
func (s *script) delay(index int) time.Duration {
	return max(0, s.m.slots[index].due.Sub(s.now))
}

func TestRestartsBackOffAndRecover(t *testing.T) {
	s := newScript(t, Limits{Workers: 1})
	p := s.serving(0)
	s.die(p)
	for _, want := range []time.Duration{0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000} {
		assert.Equal(t, want*time.Millisecond, s.delay(0))
		s.pass(s.delay(0))
		p = s.m.slots[0].next
		s.do(Spawned{p.Key, 7})
		s.die(p)
	}
	assert.True(t, s.m.slots[0].degraded)
	s.pass(MaxDelay)
	s.boot(0)
	s.pass(10 * time.Second)
	assert.True(t, s.m.slots[0].degraded, "twelve failures weigh more than ten good seconds")
	s.pass(5 * time.Second)
	assert.False(t, s.m.slots[0].degraded)
	s.pass(time.Minute)
	s.die(s.serving(0))
	assert.Zero(t, s.delay(0), "the first failure after a good minute")
}

func TestCrashesOfOneIndexDelayNoOther(t *testing.T) {
	s := newScript(t, Limits{Workers: 2})
	for range 5 {
		s.pass(s.delay(0))
		if s.m.slots[0].next != nil {
			s.boot(0)
		}
		s.die(s.serving(0))
	}
	assert.Positive(t, s.delay(0))
	s.die(s.serving(1))
	assert.Zero(t, s.delay(1))
}

func TestSuccessorIsReadyBeforeTheOldOneDrains(t *testing.T) {
	s := newScript(t, Limits{Workers: 1, DrainTimeout: time.Minute})
	old := s.serving(0)
	s.say(old, control.Message{Kind: control.KindRecycle, Reason: string(tasktype.ReasonRecycledAge)})
	successor := s.m.slots[0].next
	s.do(Spawned{successor.Key, 7})
	assert.Equal(t, accepting, old.state)
	assert.Equal(t, []Action{
		SetCurrent{successor.Key},
		Emit{
			tasktype.Event{
				Kind:       tasktype.EventDraining,
				Reason:     tasktype.ReasonRecycledAge,
				Worker:     tasktype.Worker{PID: 101},
				Generation: 1,
			},
		},
		Send{old.Key, control.Message{Kind: control.KindDrain, Within: time.Minute}},
	}, s.say(successor, control.Message{Kind: control.KindReady}))
	assert.Equal(t, []Action{
		Send{successor.Key, control.Message{Kind: control.KindAccept}},
	}, s.say(old, control.Message{Kind: control.KindStopped}))
}

func TestWorkerThatDoesNotConfirmItsStopIsKilledAfterASecond(t *testing.T) {
	s := newScript(t, Limits{Workers: 1, DrainTimeout: time.Minute})
	old := s.serving(0)
	s.say(old, control.Message{Kind: control.KindRecycle})
	s.boot(0)
	assert.NotContains(t, s.pass(confirmWithin-1), Action(Kill{old.Key}))
	assert.Contains(t, s.pass(1), Action(Kill{old.Key}))
	assert.Equal(t, tasktype.ReasonUnresponsive, old.killed)
}

// A worker says once that it wants to be recycled, also when something else is about to replace it, and fails to.
func TestWishToBeRecycledOutlivesAnAbortedReload(t *testing.T) {
	s := newScript(t, Limits{Workers: 1, DrainTimeout: time.Minute})
	s.do(ReloadWanted{2})
	s.do(Spawned{s.m.slots[0].next.Key, 7})
	s.say(s.serving(0), control.Message{Kind: control.KindRecycle, Reason: string(tasktype.ReasonRecycledAge)})
	s.do(ReloadCancelled{2, errors.New("changed my mind")})
	s.do(Exited{s.m.slots[0].next.Key, Exit{Known: true, Signal: 9}})
	successor := s.m.slots[0].next
	require.NotNil(t, successor)
	assert.Equal(t, tasktype.ReasonRecycledAge, successor.why)
}

// No worker that was told to drain is killed or reported before DrainTimeout.
func TestReloadOfManyLeavesDrainsInPeace_Row38(t *testing.T) {
	s := newScript(t, Limits{Workers: 32, MaxReplacing: 4, DrainTimeout: time.Minute})
	old := make([]*process, 32)
	for i := range old {
		old[i] = s.serving(i)
	}
	s.do(ReloadWanted{2})
	for s.m.reload != nil {
		for i := range old {
			if s.m.slots[i].next != nil {
				s.boot(i)
				s.say(old[i], control.Message{Kind: control.KindStopped})
				s.say(s.serving(i), control.Message{Kind: control.KindAccepting})
			}
		}
	}
	for _, a := range s.pass(time.Minute) {
		assert.NotEqual(t, "lifecycle.Kill", typeName(a))
	}
	kills := 0
	for _, a := range s.pass(confirmWithin) {
		if typeName(a) == "lifecycle.Kill" {
			kills++
		}
	}
	assert.Equal(t, 32, kills)
}

func TestHardLimitGivesNeighboursADrainAndEndsEvenWithoutOne(t *testing.T) {
	for _, c := range []struct {
		name     string
		drain    time.Duration
		neighbor time.Duration
	}{
		{"a drain of a minute", time.Minute, time.Minute},
		{"a drain without end", -1, StuckTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, Limits{Workers: 2, DrainTimeout: c.drain})
			s.say(s.serving(1), control.Message{Kind: control.KindRecycle}) // takes the only place
			old := s.serving(0)
			s.say(old, control.Message{Kind: control.KindHardLimit, Limit: time.Second})
			assert.NotNil(t, s.m.slots[0].next, "whatever else is being replaced")
			s.say(old, control.Message{Kind: control.KindStopped})
			assert.NotContains(t, s.pass(c.neighbor), Action(Kill{old.Key}))
			assert.Contains(t, s.pass(confirmWithin), Action(Kill{old.Key}))
			assert.Equal(t, tasktype.ReasonHardLimit, old.killed)
		})
	}
}

func TestHardLimitInADrainForEverEndsIt(t *testing.T) {
	s := newScript(t, Limits{Workers: 1, DrainTimeout: -1})
	old := s.serving(0)
	s.do(ShutdownWanted{})
	s.say(old, control.Message{Kind: control.KindStopped})
	assert.Empty(t, s.pass(time.Hour))
	s.say(old, control.Message{Kind: control.KindHardLimit})
	assert.Contains(t, s.pass(StuckTimeout+confirmWithin), Action(Kill{old.Key}))
}

func TestSuspectCountsAsAFailure(t *testing.T) {
	s := newScript(t, Limits{Workers: 1, DrainTimeout: time.Minute})
	for i := range 3 {
		s.say(s.serving(0), control.Message{Kind: control.KindSuspect})
		if i == 0 {
			assert.Zero(t, s.delay(0))
		} else {
			assert.Positive(t, s.delay(0))
		}
		s.pass(s.delay(0))
		successor := s.m.slots[0].next
		for _, p := range s.m.slots[0].retiring {
			s.say(p, control.Message{Kind: control.KindStopped})
			s.do(Exited{p.Key, Exit{Known: true}})
		}
		s.do(Spawned{successor.Key, 7})
		s.say(successor, control.Message{Kind: control.KindReady})
		s.say(successor, control.Message{Kind: control.KindAccepting})
	}
	assert.EqualValues(t, 3, s.m.slots[0].restarts)
}

func TestLateTickBlamesNobody(t *testing.T) {
	s := newScript(t, Limits{Workers: 1, DrainTimeout: time.Minute})
	old := s.serving(0)
	s.say(old, control.Message{Kind: control.KindRecycle})
	s.boot(0)
	s.now = s.now.Add(time.Hour) // the host was stopped
	assert.NotContains(t, s.do(Tick{}), Action(Kill{old.Key}))
	assert.Contains(t, s.pass(confirmWithin), Action(Kill{old.Key}))
}

func TestShutdownRefusesWhatNobodyAcceptsAnyMore(t *testing.T) {
	s := newScript(t, Limits{Workers: 2, DrainTimeout: time.Minute})
	s.die(s.serving(0))
	s.die(s.m.slots[0].next) // not spawned: the loop would say spawnFailed
	out := s.do(ShutdownWanted{})
	assert.Contains(t, out, Action(Refuse{0}))
	assert.NotContains(t, out, Action(Refuse{1}))
	p := s.m.slots[1].retiring[0]
	assert.Contains(t, s.say(p, control.Message{Kind: control.KindStopped}), Action(Refuse{1}))
	s.do(Refused{0})
	s.do(Refused{1})
	assert.Contains(t, s.do(Exited{p.Key, Exit{Known: true}}), Action(Done{}))
}

func TestReloadIsRefusedWhereItCannotBe(t *testing.T) {
	s := newScript(t, Limits{Workers: 1, DrainTimeout: time.Minute})
	s.do(ReloadWanted{2})
	assert.Contains(t, s.do(ReloadWanted{3}), Action(ReplyReload{3, ErrReloading}))
	assert.Contains(t, s.acts, Action(DropBuild{3}))
	out := s.do(ShutdownWanted{})
	assert.Equal(t, 2, out[len(out)-3].(ReplyReload).Build, "%v", out)
	assert.Contains(t, s.do(ReloadWanted{4}), Action(ReplyReload{4, ErrEnding}))
}

// "Out of memory" only where the kernel says so, and the signal was not ours.
func TestReasonOfAnEnd_Row75(t *testing.T) {
	serving := process{state: accepting}
	retiring := process{state: draining, retire: tasktype.ReasonReloaded}
	for _, c := range []struct {
		name string
		p    process
		e    Exit
		want tasktype.Reason
	}{
		{"SIGKILL and the kernel counted", serving, Exit{Signal: 9, Known: true, OOM: true}, tasktype.ReasonOutOfMemory},
		{"SIGKILL", serving, Exit{Signal: 9, Known: true}, tasktype.ReasonKilled},
		{"SIGKILL of ours", process{killed: tasktype.ReasonHardLimit}, Exit{Signal: 9, Known: true, OOM: true}, tasktype.ReasonHardLimit},
		{"out of memory at boot", process{state: booting}, Exit{Signal: 9, Known: true, OOM: true}, tasktype.ReasonOutOfMemory},
		{"the runtime got no memory", serving, Exit{Code: 2, Known: true, Stderr: "fatal error: runtime: cannot allocate memory\n…"}, tasktype.ReasonOutOfMemory},
		{"a panic", serving, Exit{Code: 2, Known: true, Stderr: "panic: out of memory"}, tasktype.ReasonCrashed},
		{"SIGSEGV at boot", process{state: booting}, Exit{Signal: 11, Known: true}, tasktype.ReasonBootFailed},
		{"exit 0 unasked", serving, Exit{Known: true}, tasktype.ReasonCrashed},
		{"reaped by the host", serving, Exit{}, tasktype.ReasonReapedElsewhere},
		{"drained", retiring, Exit{Known: true}, tasktype.ReasonReloaded},
		{"gave up in its drain", retiring, Exit{Known: true, Code: 1}, tasktype.ReasonCrashed},
		{"at the end of its drain", retiring, Exit{Known: true, Code: control.ExitUnclean}, tasktype.ReasonDrainTimeout},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.e.reason(&c.p)) })
	}
}

func TestLostTasksAreNamed(t *testing.T) {
	err := error(
		&LostError{
			[]Lost{
				{
					tasktype.Worker{Index: 1, PID: 5},
					tasktype.RunningTask{ID: 9, Name: "main.Sleep", Age: 1500 * time.Millisecond},
				},
			},
		},
	)
	assert.EqualError(t, err, "tasks lost at shutdown (1): main.Sleep (task 9, worker 1, pid 5, age 1.5s)")
	s := newScript(t, Limits{Workers: 1, DrainTimeout: time.Minute})
	p := s.serving(0)
	s.do(ShutdownWanted{})
	out := s.do(Exited{p.Key, Exit{Signal: 9, Known: true, Tasks: []tasktype.RunningTask{{ID: 3, Name: "x", Age: 4}}}})
	assert.Contains(t, out, Action(Refuse{0}))
	out = s.do(Refused{0})
	assert.Equal(
		t,
		[]Action{Done{[]Lost{{tasktype.Worker{Index: 0, PID: 101}, tasktype.RunningTask{ID: 3, Name: "x", Age: 4}}}}},
		out,
	)
}

func TestFirstFailedBootFailsTheStart(t *testing.T) {
	m := New(Limits{Workers: 2, MaxReplacing: 1, StartTimeout: time.Second}, func() float64 { return 0 })
	now := time.Now()
	m.Step(now, StartWanted{})
	first, second := m.slots[0].next, m.slots[1].next
	m.Step(now, Spawned{second.Key, 2})
	out := m.Step(now, SpawnFailed{first.Key, errors.New("no more processes")})
	assert.Contains(t, out, Action(Kill{second.Key}))
	m.Step(now, Refused{0})
	m.Step(now, Refused{1})
	out = m.Step(now, Exited{second.Key, Exit{Signal: 9, Known: true}})
	require.Len(t, out, 4)
	assert.ErrorContains(t, out[2].(ReplyStart).Err, "worker 0 did not start: no more processes")
	assert.Equal(t, Done{}, out[3])
}

func typeName(a Action) string { return fmt.Sprintf("%T", a) }
