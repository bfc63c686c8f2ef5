package tasktest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
	"github.com/taskd-go/task/tasktest"
)

// A pool is a real one or one inside this process.
type pool interface {
	task.Caller
	Shutdown(ctx context.Context) error
}

// A behaviour is something that both kinds of pool do alike: do says what it saw.
type behaviour struct {
	name string
	cfg  task.Config
	do   func(t *testing.T, p pool) string
	want string // a part of each of its lines
}

var one = task.Config{WorkerNum: 1, MaxRunningNum: 1}

var behaviours = []behaviour{
	{"results", task.Config{}, func(t *testing.T, p pool) string {
		var seen []any
		for _, v := range []any{nil, true, -2, uint64(1 << 63), 1.5, "text", []byte("bytes"), []any{1, "a"}, map[string]any{"a": []int{1}}} {
			got, err := value(p.Sync(t.Context(), Echo{v}))
			seen = append(seen, got, err)
		}
		return fmt.Sprintf("%#v", seen)
	}, `-2, interface {}(nil), 0x8000000000000000`},
	{"a defined function", one, func(t *testing.T, p pool) string {
		n, err := double.Sync(t.Context(), p, 21)
		_, failure := double.Sync(t.Context(), p, -1)
		return fmt.Sprint(n, err, words(failure))
	}, `42 <nil>-5 ran: -1 is negative`},
	{"an error", one, failing(Fail{Text: "unsettled"}), "-5 ran: unsettled"},
	{"a panic", one, failing(Fail{Text: "unlucky", Panics: true}), "-5 ran: panic: unlucky"},
	{"a handler that returns a result", one, failing(Fail{Text: "a", Handler: "returns"}), "fallback"},
	{"a handler that returns a result a panic", one, failing(Fail{Text: "a", Panics: true, Handler: "returns"}), "fallback"},
	{"a handler that fails", one, failing(Fail{Text: "a", Handler: "fails"}), "-5 ran: handler failed"},
	{"a result that cannot be encoded", one, failing(Chan{}), "-5 ran: the result, a chan int, cannot be encoded"},
	{
		"a result that is too large",
		task.Config{WorkerNum: 1, MaxPackageSize: 1024},
		failing(Blob{Out: 2048}),
		"-9 ran: ",
	},
	{
		"a package that is too large",
		task.Config{WorkerNum: 1, MaxPackageSize: 1024},
		failing(Blob{In: make([]byte, 2048)}),
		"-8 not run: ",
	},
	{
		"an unknown task",
		one,
		refusedHere(task.Named("test.nobody", nil)),
		"-4 not run: task test.nobody is not registered in this program, worker -1",
	},
	{
		"a type that is not registered",
		one,
		refusedHere(Unregistered{}),
		"-4 not run: task tasktest_test.Unregistered is not registered in this program, worker -1",
	},
	{
		"a task that is not allowed",
		task.Config{WorkerNum: 1, Tasks: []task.Runner{Echo{}}},
		failing(Count{}),
		"-4 not run: task",
	},
	{
		"a task that is allowed by name",
		task.Config{WorkerNum: 1, Tasks: []task.Runner{task.Named("test.echo", nil)}},
		failing(Echo{"allowed"}),
		"allowed",
	},
	{
		"a payload that does not decode",
		one,
		failing(task.Named("test.blob", map[string]any{"Out": "x"})),
		"-4 not run: the payload of test.blob does not decode",
	},
	{"too much meta", one, func(t *testing.T, p pool) string {
		m := map[string]string{}
		for i := range 129 {
			m[fmt.Sprint(i)] = ""
		}
		return outcome(p.Sync(t.Context(), Echo{1}, task.WithMeta(m)))
	}, "-4 not run: WithMeta: 129 pairs"},
	{"meta and deadline", one, func(t *testing.T, p pool) string {
		info, err := task.As[task.Info](
			p.Sync(t.Context(), Inform{}, task.WithMeta(map[string]string{"trace": "7"}), task.WithTimeout(time.Hour)),
		)
		in := time.Until(info.Deadline)
		return fmt.Sprint(info.TaskID, info.WorkerIndex, info.Meta, in > 50*time.Minute && in <= time.Hour, err)
	}, "1 0 map[trace:7] true <nil>"},
	{"a deadline that has passed", one, func(t *testing.T, p pool) string {
		return outcome(p.Sync(t.Context(), Echo{1}, task.WithTimeout(1)))
	}, "-7 not run: the call ended before a worker was reached"},
	{"a context that has ended", one, func(t *testing.T, p pool) string {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Sync(ctx, Echo{1})
		return words(err) + fmt.Sprint(errors.Is(err, context.Canceled))
	}, "-7 not run: the call ended before a worker was reached: context canceled"},
	{"a deadline that passes in the task", one, func(t *testing.T, p pool) string {
		m := testsync.NewRendezvous(t)
		defer func() { m.Next().Release("") }()
		return outcome(p.Sync(t.Context(), Meet{Addr: m.Addr}, task.WithTimeout(time.Second)))
	}, "-7 may have run: the call ended while worker 0 (pid N) had not answered"},
	{"a caller that cancels", one, func(t *testing.T, p pool) string {
		m := testsync.NewRendezvous(t)
		ctx, cancel := context.WithCancel(t.Context())
		answer := ask(ctx, p, Meet{Addr: m.Addr, Ctx: true}, task.WithCancel())
		g := m.Next()
		cancel()
		g.Closed(t)
		return <-answer
	}, "-7 may have run: "},
	{"a pool that is busy, and waiting", one, func(t *testing.T, p pool) string {
		m := testsync.NewRendezvous(t)
		first := ask(t.Context(), p, Meet{Addr: m.Addr})
		g := m.Next()
		busy := outcome(p.Sync(t.Context(), Echo{1}))
		waited := outcome(p.Sync(t.Context(), Echo{1}, task.WithWait(20*time.Millisecond)))
		second := ask(t.Context(), p, Echo{"second"}, task.WithWait(waitLimit))
		g.Release("first")
		return strings.Join([]string{busy, waited, <-first, <-second}, "|")
	}, "-2 not run: task process busy: of 1 workers 1 are full and 0 do not accept|-2 not run: task process busy: of 1 workers 1 are full and 0 do not accept, and no slot became free in time|first|second"},
	{"many", task.Config{WorkerNum: 2, MaxRunningNum: 64}, func(t *testing.T, p pool) string {
		var rs []task.Runner
		for i := range 50 {
			rs = append(rs, Echo{i})
		}
		rs = append(rs, Fail{Text: "one of many"}, nil)
		var seen []string
		for _, o := range p.SyncMany(t.Context(), rs) {
			seen = append(seen, outcome(o.Result, o.Err))
		}
		for _, o := range p.AsyncMany(t.Context(), rs[:3]) {
			seen = append(seen, fmt.Sprint(o.TaskID > 50, o.Err))
		}
		return strings.Join(seen, "|")
	}, "48|49|-5 ran: one of many|-4 not run: nil is not a task|true <nil>|true <nil>|true <nil>"},
	{"an asynchronous task", one, func(t *testing.T, p pool) string {
		m := testsync.NewRendezvous(t)
		id, err := p.Async(t.Context(), Meet{Addr: m.Addr})
		m.Next().Release("")
		return fmt.Sprint(id, err)
	}, "1 <nil>"},
	{
		"a soft limit",
		task.Config{WorkerNum: 1, SoftTimeLimit: 20 * time.Millisecond},
		failing(Wait{}),
		"the task's soft time limit has passed",
	},
	{"a soft limit of a call", one, func(t *testing.T, p pool) string {
		return outcome(p.Sync(t.Context(), Wait{}, task.WithTimeLimit(20*time.Millisecond, 0)))
	}, "the task's soft time limit has passed"},
	{
		"a hard limit",
		task.Config{WorkerNum: 1, MaxRunningNum: 1, DrainTimeout: 100 * time.Millisecond},
		func(t *testing.T, p pool) string {
			release := make(chan struct{})
			deaf.Store(&release)
			defer close(release)
			late := outcome(p.Sync(t.Context(), Deaf{}, task.WithTimeLimit(0, 50*time.Millisecond)))
			next := outcome(p.Sync(t.Context(), Echo{"next"}, task.WithWait(waitLimit), task.WithTimeout(waitLimit)))
			return late + "|" + next + fmt.Sprint(still(t, p).Lost)
		},
		"-5 may have run: time limit: test.deaf still ran after 50ms|next1",
	},
	{"a death", one, func(t *testing.T, p pool) string {
		if inside, ok := p.(*tasktest.Pool); ok {
			inside.Fail(tasktest.DieAfterAccepting, "test.die")
		}
		lost := outcome(p.Sync(t.Context(), Die{}))
		next := outcome(p.Sync(t.Context(), Echo{"next"}, task.WithWait(waitLimit), task.WithTimeout(waitLimit)))
		s := p.Status()[0]
		return fmt.Sprint(lost, "|", next, s.Accepted, s.Success, s.Fail, s.Lost, s.Restarts, s.Running)
	}, "-7 may have run: worker 0 (pid N) was lost: killed (signal 9, killed)|next2 1 0 1 1 0"},
	{"a drain", one, func(t *testing.T, p pool) string {
		answer := ask(t.Context(), p, Wait{Drains: true})
		running(t, p, 1)
		err := p.Shutdown(t.Context())
		_, failure := p.Sync(t.Context(), Echo{1})
		return fmt.Sprint(
			<-answer,
			err,
			errors.Is(failure, task.ErrClosed),
			errors.Is(failure, task.ErrProcessBusy),
			p.Status()[0].Success,
		)
	}, "drains<nil> true true 1"},
	{"the end of Shutdown's context", one, func(t *testing.T, p pool) string {
		answer := ask(t.Context(), p, Wait{}, task.WithTimeout(waitLimit))
		running(t, p, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return fmt.Sprint(<-after(func() { assert.Error(t, p.Shutdown(ctx)) }, answer), p.Status()[0].Success)
	}, "the pool ends now1"},
	{"functions of the configuration", one, func(t *testing.T, p pool) string {
		settled := outcome(p.Sync(t.Context(), Fail{Text: "settled", Handler: "returns"}))
		unsettled := outcome(p.Sync(t.Context(), Fail{Text: "unsettled"}))
		return settled + "|" + unsettled + "|" + outcome(p.Sync(t.Context(), Said{}))
	}, "fallback|-5 ran: unsettled|[1 1]"},
	{"counts", one, func(t *testing.T, p pool) string {
		call(t, p, "sync", Echo{1})
		call(t, p, "sync", Fail{Text: "a"})
		call(t, p, "sync", Fail{Text: "a", Handler: "returns"})
		s := still(t, p)
		return fmt.Sprint(
			s.Accepted,
			s.Success,
			s.Fail,
			s.Lost,
			s.Busy,
			s.Expired,
			len(p.Status()),
			p.Status()[0].Accepting,
		)
	}, "3 1 2 0 0 0 1 true"},
}

// A pool inside one process passes the same suite as a real one.
func TestBothKindsOfPoolBehaveAlike_Row77(t *testing.T) {
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			b.cfg.Logger = slog.New(slog.DiscardHandler)
			b.cfg.OnWorkerStart, b.cfg.OnException = onWorkerStart, onException
			real := b.do(t, startReal(t, b.cfg))
			said.started.Store(0)
			said.failed.Store(0)
			inside := b.do(t, tasktest.New(t, b.cfg))
			assert.Equal(t, real, inside)
			assert.Contains(t, inside, b.want)
		})
	}
}

// startReal starts a pool of worker processes.
func startReal(t *testing.T, cfg task.Config) *task.Task {
	t.Helper()
	dir, err := os.MkdirTemp("", "r")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg.TempDir, cfg.ServerName = dir, serverName
	p, err := task.New(cfg)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		_ = p.Shutdown(ctx)
	})
	return p
}

// failing is a behaviour of one call.
func failing(r task.Runner) func(t *testing.T, p pool) string {
	return func(t *testing.T, p pool) string { return outcome(p.Sync(t.Context(), r)) }
}

// Unregistered is no registered task.
type Unregistered struct{}

func (Unregistered) Run(context.Context, task.Info) (any, error) { return nil, nil }

// refusedHere is a behaviour of one call that no worker sees.
func refusedHere(r task.Runner) func(t *testing.T, p pool) string {
	return func(t *testing.T, p pool) string {
		_, err := p.Sync(t.Context(), r)
		_, failure := p.Async(t.Context(), r)
		assert.Equal(t, words(err), words(failure))
		return fmt.Sprintf("%s, worker %d", words(err), callError(t, err).WorkerIndex)
	}
}

// ask makes a call and sends its outcome.
func ask(ctx context.Context, p pool, r task.Runner, opts ...task.CallOption) <-chan string {
	answer := make(chan string, 1)
	go func() { answer <- outcome(p.Sync(ctx, r, opts...)) }()
	return answer
}

// after does something before it hands out c.
func after(f func(), c <-chan string) <-chan string {
	f()
	return c
}

// running waits until n tasks run. The table has no event for a reader, so this polls.
func running(t *testing.T, p pool, n int) {
	t.Helper()
	for end := time.Now().Add(waitLimit); p.Status()[0].Running != n; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "%+v", p.Status())
	}
}

func value(r task.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r.Value()
}

// outcome is what a caller learns, in words.
func outcome(r task.Result, err error) string {
	if err != nil {
		return words(err)
	}
	v, err := r.Value()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}

var pids = regexp.MustCompile(`pid \d+`)

func words(err error) string {
	var e *task.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("%T: %v", err, err)
	}
	return fmt.Sprintf("%d %s: %s", e.Status, e.Delivery, pids.ReplaceAllString(e.Message, "pid N"))
}
