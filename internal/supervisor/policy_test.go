package supervisor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/sharedstate"
)

// A script drives a machine by hand; what it wants done is kept.
type script struct {
	t    *testing.T
	m    *machine
	now  time.Time
	acts []action
}

// newScript returns a pool whose workers all serve.
func newScript(t *testing.T, l limits) *script {
	l.startTimeout = 10 * time.Second
	l.maxReplacing = max(l.maxReplacing, 1)
	s := &script{t: t, now: time.Unix(1e9, 0)}
	s.m = newMachine(l, func() float64 { return 0.5 })
	s.do(startWanted{})
	for i := range l.workers {
		s.boot(i)
	}
	require.Equal(t, running, s.m.phase)
	return s
}

func (s *script) do(ev event) []action {
	s.acts = s.m.step(s.now, ev)
	return s.acts
}

func (s *script) say(p *process, m control.Message) []action {
	return s.do(received{key: p.key, Message: m})
}

// boot lets the successor of an index come up, as far as it may.
func (s *script) boot(index int) *process {
	p := s.m.slots[index].next
	require.NotNil(s.t, p, "nothing boots")
	s.do(spawned{p.key, int(p.generation) + 100})
	s.say(p, control.Message{Kind: control.KindReady})
	s.say(p, control.Message{Kind: control.KindAccepting})
	return p
}

// pass lets d pass, with all ticks in it.
func (s *script) pass(d time.Duration) (all []action) {
	end := s.now.Add(d)
	for {
		at := s.m.wake()
		if at.IsZero() || at.After(end) {
			s.now = end
			return all
		}
		s.now = at
		all = append(all, s.do(tick{})...)
	}
}

func (s *script) serving(index int) *process { return s.m.slots[index].serving }

func (s *script) die(p *process) []action {
	return s.do(exited{p.key, exit{code: 1, known: true}})
}

// delay returns how long after now the index starts again.
func (s *script) delay(index int) time.Duration {
	return max(0, s.m.slots[index].due.Sub(s.now))
}

func TestRestartsBackOffAndRecover(t *testing.T) {
	s := newScript(t, limits{workers: 1})
	p := s.serving(0)
	s.die(p)
	for _, want := range []time.Duration{0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000} {
		assert.Equal(t, want*time.Millisecond, s.delay(0))
		s.pass(s.delay(0))
		p = s.m.slots[0].next
		s.do(spawned{p.key, 7})
		s.die(p)
	}
	assert.True(t, s.m.slots[0].degraded)
	s.pass(maxDelay)
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
	s := newScript(t, limits{workers: 2})
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
	s := newScript(t, limits{workers: 1, drainTimeout: time.Minute})
	old := s.serving(0)
	s.say(old, control.Message{Kind: control.KindRecycle, Reason: "max_age"})
	successor := s.m.slots[0].next
	s.do(spawned{successor.key, 7})
	assert.Equal(t, accepting, old.state)
	assert.Equal(t, []action{
		setCurrent{successor.key},
		emit{Event{Kind: EventDraining, Reason: RecycledAge, PID: 101, Generation: 1}},
		send{old.key, control.Message{Kind: control.KindDrain, Within: time.Minute}},
	}, s.say(successor, control.Message{Kind: control.KindReady}))
	assert.Equal(t, []action{
		send{successor.key, control.Message{Kind: control.KindAccept}},
	}, s.say(old, control.Message{Kind: control.KindStopped}))
}

func TestWorkerThatDoesNotConfirmItsStopIsKilledAfterASecond(t *testing.T) {
	s := newScript(t, limits{workers: 1, drainTimeout: time.Minute})
	old := s.serving(0)
	s.say(old, control.Message{Kind: control.KindRecycle})
	s.boot(0)
	assert.NotContains(t, s.pass(confirmWithin-1), action(kill{old.key}))
	assert.Contains(t, s.pass(1), action(kill{old.key}))
	assert.Equal(t, Unresponsive, old.killed)
}

// A worker says once that it wants to be recycled, also when something else is about to replace it, and fails to.
func TestWishToBeRecycledOutlivesAnAbortedReload(t *testing.T) {
	s := newScript(t, limits{workers: 1, drainTimeout: time.Minute})
	s.do(reloadWanted{2})
	s.do(spawned{s.m.slots[0].next.key, 7})
	s.say(s.serving(0), control.Message{Kind: control.KindRecycle, Reason: "max_age"})
	s.do(reloadCancelled{2, errors.New("changed my mind")})
	s.do(exited{s.m.slots[0].next.key, exit{known: true, signal: 9}})
	successor := s.m.slots[0].next
	require.NotNil(t, successor)
	assert.Equal(t, RecycledAge, successor.why)
}

// No worker that was told to drain is killed or reported before DrainTimeout.
func TestReloadOfManyLeavesDrainsInPeace_Row38(t *testing.T) {
	s := newScript(t, limits{workers: 32, maxReplacing: 4, drainTimeout: time.Minute})
	old := make([]*process, 32)
	for i := range old {
		old[i] = s.serving(i)
	}
	s.do(reloadWanted{2})
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
		assert.NotEqual(t, "supervisor.kill", typeName(a))
	}
	kills := 0
	for _, a := range s.pass(confirmWithin) {
		if typeName(a) == "supervisor.kill" {
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
		{"a drain for ever", -1, stuckTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, limits{workers: 2, drainTimeout: c.drain})
			s.say(s.serving(1), control.Message{Kind: control.KindRecycle}) // takes the only place
			old := s.serving(0)
			s.say(old, control.Message{Kind: control.KindHardLimit, Limit: time.Second})
			assert.NotNil(t, s.m.slots[0].next, "whatever else is being replaced")
			s.say(old, control.Message{Kind: control.KindStopped})
			assert.NotContains(t, s.pass(c.neighbor), action(kill{old.key}))
			assert.Contains(t, s.pass(confirmWithin), action(kill{old.key}))
			assert.Equal(t, HardLimit, old.killed)
		})
	}
}

func TestHardLimitInADrainForEverEndsIt(t *testing.T) {
	s := newScript(t, limits{workers: 1, drainTimeout: -1})
	old := s.serving(0)
	s.do(shutdownWanted{})
	s.say(old, control.Message{Kind: control.KindStopped})
	assert.Empty(t, s.pass(time.Hour))
	s.say(old, control.Message{Kind: control.KindHardLimit})
	assert.Contains(t, s.pass(stuckTimeout+confirmWithin), action(kill{old.key}))
}

func TestSuspectCountsAsAFailure(t *testing.T) {
	s := newScript(t, limits{workers: 1, drainTimeout: time.Minute})
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
			s.do(exited{p.key, exit{known: true}})
		}
		s.do(spawned{successor.key, 7})
		s.say(successor, control.Message{Kind: control.KindReady})
		s.say(successor, control.Message{Kind: control.KindAccepting})
	}
	assert.EqualValues(t, 3, s.m.slots[0].restarts)
}

func TestLateTickBlamesNobody(t *testing.T) {
	s := newScript(t, limits{workers: 1, drainTimeout: time.Minute})
	old := s.serving(0)
	s.say(old, control.Message{Kind: control.KindRecycle})
	s.boot(0)
	s.now = s.now.Add(time.Hour) // the host was stopped
	assert.NotContains(t, s.do(tick{}), action(kill{old.key}))
	assert.Contains(t, s.pass(confirmWithin), action(kill{old.key}))
}

func TestShutdownRefusesWhatNobodyAcceptsAnyMore(t *testing.T) {
	s := newScript(t, limits{workers: 2, drainTimeout: time.Minute})
	s.die(s.serving(0))
	s.die(s.m.slots[0].next) // not spawned: the loop would say spawnFailed
	out := s.do(shutdownWanted{})
	assert.Contains(t, out, action(refuse{0}))
	assert.NotContains(t, out, action(refuse{1}))
	p := s.m.slots[1].retiring[0]
	assert.Contains(t, s.say(p, control.Message{Kind: control.KindStopped}), action(refuse{1}))
	s.do(refused{0})
	s.do(refused{1})
	assert.Contains(t, s.do(exited{p.key, exit{known: true}}), action(done{}))
}

func TestReloadIsRefusedWhereItCannotBe(t *testing.T) {
	s := newScript(t, limits{workers: 1, drainTimeout: time.Minute})
	s.do(reloadWanted{2})
	assert.Contains(t, s.do(reloadWanted{3}), action(replyReload{3, errReloading}))
	assert.Contains(t, s.acts, action(dropBuild{3}))
	out := s.do(shutdownWanted{})
	assert.Equal(t, 2, out[len(out)-3].(replyReload).build, "%v", out)
	assert.Contains(t, s.do(reloadWanted{4}), action(replyReload{4, errEnding}))
}

// "Out of memory" only where the kernel says so, and the signal was not ours.
func TestReasonOfAnEnd_Row75(t *testing.T) {
	serving := process{state: accepting}
	retiring := process{state: draining, retire: Reloaded}
	for _, c := range []struct {
		name string
		p    process
		e    exit
		want Reason
	}{
		{"SIGKILL and the kernel counted", serving, exit{signal: 9, known: true, oom: true}, OutOfMemory},
		{"SIGKILL", serving, exit{signal: 9, known: true}, Killed},
		{"SIGKILL of ours", process{killed: HardLimit}, exit{signal: 9, known: true, oom: true}, HardLimit},
		{"out of memory at boot", process{state: booting}, exit{signal: 9, known: true, oom: true}, OutOfMemory},
		{"the runtime got no memory", serving, exit{code: 2, known: true, stderr: "fatal error: runtime: cannot allocate memory\n…"}, OutOfMemory},
		{"a panic", serving, exit{code: 2, known: true, stderr: "panic: out of memory"}, Crashed},
		{"SIGSEGV at boot", process{state: booting}, exit{signal: 11, known: true}, BootFailed},
		{"exit 0 unasked", serving, exit{known: true}, Crashed},
		{"reaped by the host", serving, exit{}, ReapedElsewhere},
		{"drained", retiring, exit{known: true}, Reloaded},
		{"gave up in its drain", retiring, exit{known: true, code: 1}, Crashed},
		{"at the end of its drain", retiring, exit{known: true, code: control.ExitUnclean}, DrainTimeout},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.e.reason(&c.p)) })
	}
}

func TestLostTasksAreNamed(t *testing.T) {
	err := error(&LostError{[]Lost{{Index: 1, PID: 5, TaskID: 9, Name: "main.Sleep", Age: 1500 * time.Millisecond}}})
	assert.EqualError(t, err, "tasks lost at shutdown (1): main.Sleep (task 9, worker 1, pid 5, age 1.5s)")
	s := newScript(t, limits{workers: 1, drainTimeout: time.Minute})
	p := s.serving(0)
	s.do(shutdownWanted{})
	out := s.do(exited{p.key, exit{signal: 9, known: true, tasks: []sharedstate.InFlight{{TaskID: 3, Name: "x", Started: 4}}}})
	assert.Contains(t, out, action(refuse{0}))
	out = s.do(refused{0})
	assert.Equal(t, []action{done{[]Lost{{Index: 0, PID: 101, TaskID: 3, Name: "x", Started: 4}}}}, out)
}

func TestFirstFailedBootFailsTheStart(t *testing.T) {
	m := newMachine(limits{workers: 2, maxReplacing: 1, startTimeout: time.Second}, func() float64 { return 0 })
	now := time.Now()
	m.step(now, startWanted{})
	first, second := m.slots[0].next, m.slots[1].next
	m.step(now, spawned{second.key, 2})
	out := m.step(now, spawnFailed{first.key, errors.New("no more processes")})
	assert.Contains(t, out, action(kill{second.key}))
	m.step(now, refused{0})
	m.step(now, refused{1})
	out = m.step(now, exited{second.key, exit{signal: 9, known: true}})
	require.Len(t, out, 4)
	assert.ErrorContains(t, out[2].(replyStart).err, "worker 0 did not start: no more processes")
	assert.Equal(t, done{}, out[3])
}

func typeName(a action) string { return fmt.Sprintf("%T", a) }
