package supervisor

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/sharedstate"
)

type Config struct {
	control.Settings
	ServerName, TempDir string
	MaxReplacing        int
	StartTimeout        time.Duration
	Env                 []string // allow-list of names; nil: all
	Tasks               []string // registry names
	Allowed             []string // names that the workers may run; empty: all
	Logger              *slog.Logger
	OnEvent             func(Event)
	Stdout, Stderr      *os.File // where the workers' output goes when Logger is nil
}

// A Reason says why something happened, from a closed list.
type Reason uint32

// An Event is one change of state.
type Event struct {
	Time       time.Time
	Kind       string // "started", "ready", "exited", "recycled", "degraded", …
	Reason     Reason
	Index, PID int
	Generation uint64
	Signal     int
	ExitCode   int
	Tasks      []sharedstate.InFlight // what was running when it died
	Stderr     string                 // its last lines
	Text       string
	Dropped    uint64 // events dropped before this one because OnEvent was slow
}

// SocketPath and PoolSocketPath and LockPath are the files of a pool.
func SocketPath(dir, name string, index int) string { panic("stub") }
func PoolSocketPath(dir, name string) string        { panic("stub") }
func LockPath(dir, name string) string              { panic("stub") }

// Start takes the pool's name, binds the listeners, spawns the workers, and returns when every one accepts, or with an error that holds the failing worker's last words
// and exit status, everything cleaned up. ctx bounds the boot only.
func Start(ctx context.Context, cfg Config) (*Supervisor, error) { panic("stub") }

type Supervisor struct{}

func (s *Supervisor) Table() *sharedstate.Table        { panic("stub") }
func (s *Supervisor) Reload(ctx context.Context) error { panic("stub") }

// Shutdown drains and ends the pool. Any number of times, from any goroutine; all wait for the one drain. The end of
// any caller's ctx stops what still runs; the error lists the lost tasks.
func (s *Supervisor) Shutdown(ctx context.Context) error { panic("stub") }

// Attach connects to another process's pool through its control socket: the table, read-only, and the numbers.
// gone is closed when that pool's parent is gone.
func Attach(ctx context.Context, dir, name string) (*Attachment, error) { panic("stub") }

// An Attachment is a read-only view of another process's pool.
type Attachment struct {
	Table    *sharedstate.Table
	Settings control.Settings
}

func (a *Attachment) Gone() <-chan struct{} { panic("stub") }
func (a *Attachment) Close() error          { panic("stub") }

// Title is a worker's process title.
func Title(server string, index int) string { panic("stub") }

// Status is the table's, and after Shutdown what it was at the end.
func (s *Supervisor) Status() []sharedstate.Status { panic("stub") }

func (r Reason) String() string { panic("stub") }

// Describe says in words how a worker ended.
func Describe(e sharedstate.End) string { panic("stub") }
