package sys

import (
	"net"
	"os"
	"time"
)

// Now returns CLOCK_MONOTONIC in nanoseconds, the same base in all processes of the host. 25 ns a call.
func Now() int64 { panic("stub") }

// Memory makes size bytes of zeroed shared memory without a name: a memfd sealed against
// resizing, elsewhere an unlinked file. Close-on-exec.
func Memory(name string, size int) (*os.File, error) { panic("stub") }

// ReadOnly returns a second descriptor of a Memory that can only be mapped for reading.
func ReadOnly(f *os.File) (*os.File, error) { panic("stub") }

func Map(f *os.File, size int, writable bool) ([]byte, error) { panic("stub") }
func Unmap(b []byte) error                                    { panic("stub") }

// FutexWait sleeps while *addr == val, at most d (d <= 0: no limit); spurious returns happen. addr lies in shared memory, a read-only
// mapping suffices. Where the system has no futex it sleeps in short steps. FutexWake wakes all sleepers of all processes.
func FutexWait(addr *uint32, val uint32, d time.Duration) { panic("stub") }
func FutexWake(addr *uint32)                              { panic("stub") }

type Cred struct{ PID, UID int }

// Peer returns who is at the other end (for a client: who called listen last).
func Peer(c *net.UnixConn) (Cred, error) { panic("stub") }

// Listen binds a Unix stream socket whose file has mode 0600 before it is visible, umask untouched, backlog 4096 capped by the system;
// unlink-on-close is off. Relisten calls listen again on an inherited socket, so that Peer at the other end names this process.
func Listen(path string) (*net.UnixListener, error) { panic("stub") }
func Relisten(l *net.UnixListener) error            { panic("stub") }

// A FileID tells two files of one path apart.
type FileID struct{ Dev, Ino uint64 }

func IDOf(path string) (FileID, error) { panic("stub") }

// Lock takes path's flock without waiting, writes our pid into it; ErrLocked when another has it, with the holder's pid (0: unknown).
func Lock(path string) (f *os.File, holder int, err error) { panic("stub") }

// A Process is a handle of a child: signals go through it alone (pidfd), never to a reused pid.
type Process struct{}

type Spawn struct {
	Exe   *os.File // executed through its descriptor; the file may have been replaced or deleted
	Argv  []string // Argv[0] is the process title
	Env   []string
	Files []*os.File // descriptors 0, 1, 2, 3 …
}

func Start(s Spawn) (*Process, error)         { panic("stub") } // in a process group of its own
func (p *Process) PID() int                   { panic("stub") }
func (p *Process) Signal(sig os.Signal) error { panic("stub") } // os.ErrProcessDone after the reap
func (p *Process) KillGroup()                 { panic("stub") } // SIGKILL to the whole group; no-op after the reap

// Exited waits until the process has ended, without reaping it and without a thread of its own (pidfd in the poller; WNOWAIT).
// Reap kills what is left of its group, then reaps. The state is unknown (ok false) where someone else reaped it.
func (p *Process) Exited()                          { panic("stub") }
func (p *Process) Reap() (state ExitState, ok bool) { panic("stub") }

type ExitState struct {
	Code     int // when it exited
	Signal   int // when a signal ended it, else 0
	CoreDump bool
}

// OpenSelf opens the running executable itself, also when its path was replaced or deleted.
func OpenSelf() (*os.File, error) { panic("stub") }

// SetTitle sets what /proc/PID/comm shows (15 bytes).
func SetTitle(title string) { panic("stub") }

// AdoptFiles is called in a re-executed worker before main: it sets close-on-exec on descriptors 3 … 3+ours-1
// and closes all inherited ones above that have no close-on-exec flag.
func AdoptFiles(ours int) { panic("stub") }

// SendFile and RecvFile pass one descriptor with a message over a Unix socket.
func SendFile(c *net.UnixConn, msg []byte, f *os.File) error              { panic("stub") }
func RecvFile(c *net.UnixConn, buf []byte) (n int, f *os.File, err error) { panic("stub") }

// WatchGone returns a channel that is sent to whenever one of the named files of dir is removed or renamed away
// (inotify; kqueue on macOS). It costs nothing while nothing happens. Close the closer to end it.
func WatchGone(dir string, names []string) (gone <-chan string, stop func(), err error) {
	panic("stub")
}

// CloseRead is shutdown(SHUT_RD). BarrierRead says whether that is an exact barrier here (Linux): a peer's later write fails, what is buffered can still be read.
func CloseRead(c *net.UnixConn) error { panic("stub") }

const BarrierRead = true

// OOMScore raises this process's oom_score_adj by delta (Linux; elsewhere nothing happens).
func OOMScore(delta int) { panic("stub") }

// OOMKills returns how many processes of this cgroup the kernel killed for memory so far; ok false where unknown.
func OOMKills() (n uint64, ok bool) { panic("stub") }

// MemoryLimit returns the cgroup's memory limit in bytes, 0: none or unknown. Resident returns a process's resident size in bytes.
func MemoryLimit() int64     { panic("stub") }
func Resident(pid int) int64 { panic("stub") }
