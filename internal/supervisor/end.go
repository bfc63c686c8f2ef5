package supervisor

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/sharedstate"
)

// An exit is what the parent saw of a process's end.
type exit struct {
	signal int
	code   int
	known  bool // false: the host reaped it
	oom    bool // the kernel killed a process of our cgroup for memory since the last exit
	tasks  []sharedstate.InFlight
	stderr string
}

// reason says why p ended. What we did to it comes first, then what the kernel says, then what it
// was doing.
func (e exit) reason(p *process) Reason {
	switch {
	case p.killed != Unknown:
		return p.killed
	case !e.known:
		return ReapedElsewhere
	case e.signal == int(syscall.SIGKILL) && e.oom, e.code == crashCode && ranOut(e.stderr):
		return OutOfMemory
	case p.state == booting:
		return BootFailed
	case e.signal != 0:
		return Killed
	case p.retire == HardLimit:
		return HardLimit
	case p.retire == Unknown:
		return Crashed
	case e.code == 0:
		return p.retire
	case e.code == control.ExitUnclean:
		return DrainTimeout
	}
	return Crashed
}

// crashCode is the exit status of a Go program that the runtime ends.
const crashCode = 2

// ranOut says whether a runtime's last words are that the system gave it no more memory.
func ranOut(words string) bool {
	return strings.Contains(words, "fatal error: out of memory") || strings.Contains(words, "fatal error: runtime: out of memory") ||
		strings.Contains(words, "fatal error: runtime: cannot allocate memory")
}

// Describe says in words how a worker ended: the reason, and its signal or exit status where there
// is one.
func Describe(e sharedstate.End) string {
	why := strings.ReplaceAll(Reason(e.How).String(), "_", " ")
	switch {
	case e.Signal != 0:
		return fmt.Sprintf("%s (signal %d, %s)", why, e.Signal, syscall.Signal(e.Signal))
	case e.Code != 0:
		return fmt.Sprintf("%s (exit status %d)", why, e.Code)
	}
	return why
}

// A Lost is a task that was running when its worker process ended.
type Lost struct {
	Index, PID int
	TaskID     uint64
	Name       string
	Started    int64 // CLOCK_MONOTONIC, ns
	Age        time.Duration
}

// A LostError is the error of a Shutdown that had to end running tasks.
type LostError struct{ Tasks []Lost }

// Error names at most ten of the tasks.
func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tasks lost at shutdown (%d):", len(e.Tasks))
	for i, t := range e.Tasks {
		if i == 10 {
			fmt.Fprintf(&b, " and %d more", len(e.Tasks)-i)
			break
		}
		fmt.Fprintf(&b, " %s (task %d, worker %d, pid %d, age %s)", t.Name, t.TaskID, t.Index, t.PID, t.Age.Round(time.Millisecond))
	}
	return b.String()
}
