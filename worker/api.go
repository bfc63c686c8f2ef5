package worker

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// Info is what a running task learns of itself.
type Info struct {
	TaskID      uint64
	WorkerIndex int
	Deadline    time.Time
	Meta        map[string]string
}

// A Task is a decoded package, ready to run.
type Task interface {
	Run(ctx context.Context, info Info) (any, error)
	// OnException answers for a failed Run; handled is false when the task has no handler of its own.
	OnException(ctx context.Context, err error, info Info) (v any, handled bool, failure error)
}

// A Decoder makes a Task of a payload (raw msgpack that it must not keep).
type Decoder func(payload []byte) (Task, error)

// A PanicError is the error of a task that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { panic("stub") }

// A Failure is one that the task's own handler did not settle.
type Failure struct {
	TaskID uint64
	Task   string
	Err    error // what OnException returned, or Run's error; a *PanicError for a panic
}

type Config struct {
	Index          int
	Generation     uint64
	Row            sharedstate.Row
	Table          *sharedstate.Table
	Listener       *net.UnixListener
	MaxPackageSize int
	FrameTimeout   time.Duration
	DrainGrace     time.Duration
	SoftTimeLimit  time.Duration
	TimeLimit      time.Duration
	// Lookup finds a task type: ok false when it is unknown or not allowed, why says which.
	Lookup func(name []byte) (d Decoder, ok bool, why string)
	// OnException is told of failures that no task handler settled; nil: only logged.
	OnException func(Failure)
	// AllowPeer says whether a peer may connect; nil: the same user and root.
	Logger *slog.Logger
	// OnSoftLimit and OnHardLimit tell the parent. Each is called at most once a task.
	OnSoftLimit func(taskID uint64, task string, limit time.Duration, dump []byte)
	OnHardLimit func(taskID uint64, task string, limit time.Duration)
}

// A Server serves one listener. The row's counters are its own.
type Server struct{}

func New(cfg Config) *Server { panic("stub") }

// Ready sets the row to accepting: from now on, once the parent has made it current, clients may choose it. No connection is accepted yet.
func (s *Server) Ready() { panic("stub") }

// Serve calls listen again on the inherited socket and accepts until Drain; it returns when the drain is complete:
// last answers sent, connections closed.
func (s *Server) Serve() error { panic("stub") }

// Drain stops accepting: accepting = 0, then no more connections, then (stopped is closed) each connection's drain as PROTOCOL.md says. Tasks go on, at most for within (negative: for ever);
// in its last second (or last fifth, if that is shorter) their contexts end with ErrDrain. At the end of within Serve returns an error that lists what still runs. end: what sits in the backlog is accepted and answered with -2 first.
// A second call may shorten within. Safe before Serve and at any time.
func (s *Server) Drain(within time.Duration, end bool) (stopped <-chan struct{}) { panic("stub") }

// Cut ends the contexts of all running tasks with cause.
func (s *Server) Cut(cause error) { panic("stub") }

// Draining returns the channel that closes when the worker of a task's ctx drains; nil outside a task.
func Draining(ctx context.Context) <-chan struct{} { panic("stub") }

// Refuse accepts everything that sits in l's backlog and answers every package in it with -2, then returns; for
// an index whose worker is gone at the end of the pool. l stays open.
func Refuse(l *net.UnixListener, index int, maxPackageSize int, within time.Duration) { panic("stub") }

// Causes of a task's context.
var ErrSoftLimit, ErrDrain, ErrShutdown, ErrCaller error

var _ protocol.Status
