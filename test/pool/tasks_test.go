package pool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task"
)

// The tasks that the tests run. The workers are this test binary.

func init() {
	for _, r := range []task.Runner{
		Echo{}, Hold{}, Fail{}, Who{}, Exit{}, Signal{}, Spin{}, Print{}, Chan{}, Blob{}, Mark{}, Stuck{}, UntilDrain{}, DeadlineTo{}, Slow{}, Inside{}, Noisy{}, Bytes{}, Hoard{},
	} {
		task.Register(r)
	}
	task.RegisterName("test.greet", &Greet{})
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

type Greet struct{ Name string }

func (g *Greet) Run(context.Context, task.Info) (any, error) { return "hello " + g.Name, nil }

// Hold reports to a rendezvous and runs until the test releases it; the test's answer is its result.
type Hold struct {
	Addr string
	Ctx  bool // it also ends with its context, whose cause is then its error
}

func (m Hold) Run(ctx context.Context, info task.Info) (any, error) {
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

// Fail fails with an error or a panic; Handler says what its OnException does.
type Fail struct {
	Text    string
	Panics  bool
	Handler string // "": there is none; "returns", "fails", "panics"
}

var errHandler = errors.New("handler failed")

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
		return nil, errHandler
	case "panics":
		panic("handler panicked")
	}
	return nil, err
}

// Who returns what it knows of itself.
type Who struct{}

type Self struct {
	PID      int
	Title    string
	Comm     string
	Info     task.Info
	FDs      []string
	Env      []string
	Args     []string
	Procs    int
	IsWorker bool
	OOMScore string
	MaxHeap  int64 // what the garbage collector keeps to
}

func (Who) Run(_ context.Context, info task.Info) (any, error) {
	s := Self{
		PID: os.Getpid(), Info: info, Env: os.Environ(), Args: os.Args,
		Procs: runtime.GOMAXPROCS(0), IsWorker: task.IsWorker(), MaxHeap: debug.SetMemoryLimit(-1),
	}
	title, _ := os.ReadFile("/proc/self/cmdline")
	s.Title, _, _ = strings.Cut(string(title), "\x00")
	comm, _ := os.ReadFile("/proc/self/comm")
	s.Comm = strings.TrimSpace(string(comm))
	score, _ := os.ReadFile("/proc/self/oom_score_adj")
	s.OOMScore = strings.TrimSpace(string(score))
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil {
			s.FDs = append(s.FDs, target)
		}
	}
	return s, nil
}

// Exit ends its worker process.
type Exit struct{ Code int }

func (e Exit) Run(context.Context, task.Info) (any, error) {
	os.Exit(e.Code)
	return nil, nil
}

// Signal prints a line and sends its worker process a signal.
type Signal struct {
	Number int
	Print  string
}

func (s Signal) Run(context.Context, task.Info) (any, error) {
	if s.Print != "" {
		fmt.Fprintln(os.Stderr, s.Print)
	}
	if err := syscall.Kill(os.Getpid(), syscall.Signal(s.Number)); err != nil {
		return nil, err
	}
	select {} // the signal ends it
}

// Spin keeps a processor busy for For and never yields.
type Spin struct{ For time.Duration }

func (s Spin) Run(context.Context, task.Info) (any, error) {
	n := 0
	for end := time.Now().Add(s.For); ; n++ {
		if n%(1<<20) == 0 && time.Now().After(end) {
			return n, nil
		}
	}
}

// Print writes Bytes to stdout and to stderr.
type Print struct {
	Line  string
	Bytes int
}

func (p Print) Run(context.Context, task.Info) (any, error) {
	line := p.Line + strings.Repeat("x", max(0, 99-len(p.Line))) + "\n"
	for n := 0; n < p.Bytes; n += len(line) {
		fmt.Fprint(os.Stdout, line)
		fmt.Fprint(os.Stderr, line)
	}
	return nil, nil
}

// Chan returns what cannot be encoded.
type Chan struct{}

func (Chan) Run(context.Context, task.Info) (any, error) { return make(chan int), nil }

// Blob carries In and returns Out bytes.
type Blob struct {
	In  []byte
	Out int
}

func (b Blob) Run(context.Context, task.Info) (any, error) { return make([]byte, b.Out), nil }

// Mark leaves a file, by which the test knows that it ran.
type Mark struct {
	Path     string
	Encoding SlowText
}

func (m Mark) Run(context.Context, task.Info) (any, error) {
	return nil, os.WriteFile(m.Path, nil, 0o600)
}

// Stuck reports to a rendezvous, if it has one, and then blocks whatever its context says.
type Stuck struct{ Addr string }

func (d Stuck) Run(ctx context.Context, info task.Info) (any, error) {
	if d.Addr != "" {
		c, err := net.Dial("unix", d.Addr)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(c, "%d %d %d\n", info.TaskID, info.WorkerIndex, os.Getpid())
	}
	select {}
}

// UntilDrain returns early when its worker drains.
type UntilDrain struct{ Addr string }

func (p UntilDrain) Run(ctx context.Context, info task.Info) (any, error) {
	c, err := net.Dial("unix", p.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	fmt.Fprintf(c, "%d %d %d\n", info.TaskID, info.WorkerIndex, os.Getpid())
	<-task.Draining(ctx)
	return "drained", nil
}

// DeadlineTo writes its caller's deadline to a file.
type DeadlineTo struct {
	Path     string
	Encoding SlowText
}

func (d DeadlineTo) Run(_ context.Context, info task.Info) (any, error) {
	b, err := info.Deadline.MarshalText()
	if err != nil {
		return nil, err
	}
	return nil, os.WriteFile(d.Path, b, 0o600)
}

// Slow takes a time to encode and a time to run.
type Slow struct {
	Encoding SlowText
	For      time.Duration
}

func (s Slow) Run(ctx context.Context, _ task.Info) (any, error) {
	select {
	case <-ctx.Done():
	case <-time.After(s.For):
	}
	return nil, nil
}

// SlowText takes its time to become a text.
type SlowText struct{ Takes time.Duration }

func (s SlowText) MarshalText() ([]byte, error) {
	time.Sleep(s.Takes) // what a slow encoder does
	return []byte("slow"), nil
}

func (*SlowText) UnmarshalText([]byte) error { return nil }

// unregistered is a task that no registry knows.
type unregistered struct{}

func (*unregistered) Run(context.Context, task.Info) (any, error) { return nil, nil }

// Inside starts a pool inside a worker and calls it.
type Inside struct{ Dir, Name string }

func (i Inside) Run(ctx context.Context, _ task.Info) (any, error) {
	p, err := task.New(task.Config{TempDir: i.Dir, ServerName: i.Name})
	if err != nil {
		return nil, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	defer p.Shutdown(ctx)
	return task.As[string](p.Sync(ctx, &Greet{Name: "inside"}))
}

// Noisy reports to a rendezvous, prints until printing fails, reports again, and ends when both are
// released.
type Noisy struct{ Addr string }

func (n Noisy) Run(context.Context, task.Info) (any, error) {
	first, err := net.Dial("unix", n.Addr)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	fmt.Fprintf(first, "0 0 %d\n", os.Getpid())
	for err == nil {
		_, err = fmt.Fprintln(os.Stderr, "noise")
	}
	second, err := net.Dial("unix", n.Addr)
	if err != nil {
		return nil, err
	}
	defer second.Close()
	fmt.Fprintf(second, "0 0 %d\n", os.Getpid())
	bufio.NewReader(first).ReadString('\n')
	bufio.NewReader(second).ReadString('\n')
	return nil, nil
}

// Bytes returns what it carries.
type Bytes struct{ Data []byte }

func (b Bytes) Run(context.Context, task.Info) (any, error) { return b.Data, nil }

// Hoard keeps memory for as long as its worker lives.
type Hoard struct{ Bytes int }

var hoarded struct {
	sync.Mutex
	all [][]byte
}

func (h Hoard) Run(context.Context, task.Info) (any, error) {
	b := make([]byte, h.Bytes)
	for i := 0; i < len(b); i += 1024 {
		b[i] = 1
	}
	hoarded.Lock()
	defer hoarded.Unlock()
	hoarded.all = append(hoarded.all, b)
	return nil, nil
}
