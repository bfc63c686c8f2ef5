package tasktest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

const serverName = "real"

// The real pools of the comparison are this test binary; those of the package need no TestMain.
func TestMain(m *testing.M) {
	if task.IsWorker() {
		task.RunIfWorker(task.Config{ServerName: serverName, OnWorkerStart: onWorkerStart, OnException: onException})
	}
	task.RunIfWorker()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each worker
	os.Exit(m.Run())
}

func init() {
	for name, r := range map[string]task.Runner{
		"test.echo": Echo{}, "test.count": Count{}, "test.meet": Meet{}, "test.deaf": Deaf{}, "test.fail": Fail{},
		"test.inform": Inform{}, "test.blob": Blob{}, "test.wait": Wait{}, "test.said": Said{}, "test.chan": Chan{}, "test.die": Die{}, "test.cause": Cause{},
	} {
		task.RegisterName(name, r)
	}
}

var double = task.Define("test.double", func(_ context.Context, n int) (int, error) {
	if n < 0 {
		return 0, fmt.Errorf("%d is negative", n)
	}
	return 2 * n, nil
})

// Echo returns its value.
type Echo struct{ Value any }

func (e Echo) Run(context.Context, task.Info) (any, error) { return e.Value, nil }

var runs atomic.Int64

// Count counts its runs.
type Count struct{}

func (Count) Run(context.Context, task.Info) (any, error) { return runs.Add(1), nil }

// Meet tells the test that it runs and goes on when the test says so.
type Meet struct {
	Addr string
	Ctx  bool // it also ends with its context, whose cause is then its error
}

func (m Meet) Run(ctx context.Context, info task.Info) (any, error) {
	c, err := net.Dial("unix", m.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if m.Ctx {
		defer context.AfterFunc(ctx, func() { c.Close() })()
	}
	fmt.Fprintf(c, "%d %d %d\n", info.TaskID, info.WorkerIndex, os.Getpid())
	answer, err := bufio.NewReader(c).ReadString('\n')
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return strings.TrimSpace(answer), err
}

var deaf atomic.Pointer[chan struct{}]

// Deaf does not end with its context, but with the test's word, where it runs in the test.
type Deaf struct{}

func (Deaf) Run(context.Context, task.Info) (any, error) {
	if release := deaf.Load(); release != nil {
		<-*release
		return nil, nil
	}
	select {}
}

// Die ends its worker process.
type Die struct{}

func (Die) Run(context.Context, task.Info) (any, error) {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return nil, err
	}
	select {}
}

// Fail fails with an error or a panic; Handler says what its OnException does.
type Fail struct {
	Text    string
	Panics  bool
	Handler string // "": none, "returns", "fails"
}

func (f Fail) Run(context.Context, task.Info) (any, error) {
	if f.Panics {
		panic(f.Text)
	}
	return nil, errors.New(f.Text)
}

func (f Fail) OnException(_ context.Context, err error, _ task.Info) (any, error) {
	var p *task.PanicError
	if errors.As(err, &p) != f.Panics {
		return nil, fmt.Errorf("got %T for Panics=%v", err, f.Panics)
	}
	switch f.Handler {
	case "returns":
		return "fallback", nil
	case "fails":
		return nil, errors.New("handler failed")
	}
	return nil, err
}

// Inform returns what it knows of itself.
type Inform struct{}

func (Inform) Run(_ context.Context, info task.Info) (any, error) { return info, nil }

// Blob carries In and returns Out bytes.
type Blob struct {
	In  []byte
	Out int
}

func (b Blob) Run(context.Context, task.Info) (any, error) { return make([]byte, b.Out), nil }

// Chan returns what cannot be encoded.
type Chan struct{}

func (Chan) Run(context.Context, task.Info) (any, error) { return make(chan int), nil }

// Wait waits for the end of its context and returns its cause.
type Wait struct{ Drains bool }

func (w Wait) Run(ctx context.Context, _ task.Info) (any, error) {
	if w.Drains {
		<-task.Draining(ctx)
		return "drains", nil
	}
	<-ctx.Done()
	return context.Cause(ctx).Error(), nil
}

// What OnWorkerStart and OnException of this process were told.
var said struct {
	started, failed atomic.Int64
}

func onWorkerStart(context.Context, task.Worker) error {
	said.started.Add(1)
	return nil
}

func onException(err *task.Error, _ int) {
	if err.Status == task.ErrTask && err.Delivery == task.Ran && err.Message == "unsettled" {
		said.failed.Add(1)
	}
}

// Said returns that.
type Said struct{}

func (Said) Run(context.Context, task.Info) (any, error) {
	return []int64{said.started.Load(), said.failed.Load()}, nil
}

// still waits until no task runs and returns the sums. The table has no event for a reader, so this polls.
func still(t *testing.T, c task.Caller) (sum task.WorkerStatus) {
	t.Helper()
	for end := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		sum = task.WorkerStatus{}
		for _, r := range c.Status() {
			sum.Running += r.Running
			sum.Success += r.Success
			sum.Fail += r.Fail
			sum.Accepted += r.Accepted
			sum.Lost += r.Lost
			sum.Busy += r.Busy
			sum.Expired += r.Expired
		}
		if sum.Running == 0 && sum.Accepted == sum.Success+sum.Fail+sum.Lost {
			return sum
		}
		require.True(t, time.Now().Before(end), "%+v", c.Status())
	}
}

// run runs a test function outside a test.
func run(f func(testing.TB)) {
	t := &outside{ctx: context.Background()}
	f(t)
	for _, cleanup := range t.cleanups {
		cleanup()
	}
}

type outside struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func (o *outside) Helper()                  {}
func (o *outside) Cleanup(f func())         { o.cleanups = append(o.cleanups, f) }
func (o *outside) Context() context.Context { return o.ctx }
