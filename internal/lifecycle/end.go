package lifecycle

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// An Exit is what the parent saw of a process's end.
type Exit struct {
	Signal int
	Code   int
	Known  bool // false: the host reaped it
	OOM    bool // the kernel killed a process of our cgroup for memory since the last exit
	Tasks  []tasktype.RunningTask
	Stderr string
}

// reason returns why p ended. What the pool did to it counts first, then what the kernel says, then
// its state.
func (e Exit) reason(p *process) tasktype.Reason {
	switch {
	case p.killed != "":
		return p.killed
	case !e.Known:
		return tasktype.ReasonReapedElsewhere
	case e.Signal == int(syscall.SIGKILL) && e.OOM, e.Code == crashCode && ranOut(e.Stderr):
		return tasktype.ReasonOutOfMemory
	case p.state == booting:
		return tasktype.ReasonBootFailed
	case e.Signal != 0:
		return tasktype.ReasonKilled
	case p.retire == tasktype.ReasonHardLimit:
		return tasktype.ReasonHardLimit
	case p.retire == "":
		return tasktype.ReasonCrashed
	case e.Code == 0:
		return p.retire
	case e.Code == control.ExitUnclean:
		return tasktype.ReasonDrainTimeout
	}
	return tasktype.ReasonCrashed
}

// crashCode is the exit status of a Go program that the runtime ends.
const crashCode = 2

// ranOut reports whether words are those of a Go runtime that got no more memory.
func ranOut(words string) bool {
	return strings.Contains(words, "fatal error: out of memory") ||
		strings.Contains(words, "fatal error: runtime: out of memory") ||
		strings.Contains(words, "fatal error: runtime: cannot allocate memory")
}

// Describe returns in words how a worker ended: the reason, and the signal or the exit status if it
// is not 0.
func Describe(why tasktype.Reason, signal, code int) string {
	words := strings.ReplaceAll(string(why), "_", " ")
	if why == "" { // a program that has more reasons wrote it
		words = "unknown"
	}
	switch {
	case signal != 0:
		return fmt.Sprintf("%s (signal %d, %s)", words, signal, syscall.Signal(signal))
	case code != 0:
		return fmt.Sprintf("%s (exit status %d)", words, code)
	}
	return words
}

// A Lost is a task that was running when its worker process ended.
type Lost struct {
	Worker tasktype.Worker
	Task   tasktype.RunningTask
}

// A LostError is the error of a Shutdown that had to end running tasks.
type LostError struct{ Tasks []Lost }

// Error names at most ten of the tasks.
func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tasks lost at shutdown (%d):", len(e.Tasks))
	for i, l := range e.Tasks {
		if i == 10 {
			fmt.Fprintf(&b, " and %d more", len(e.Tasks)-i)
			break
		}
		fmt.Fprintf(&b, " %s (task %d, worker %d, pid %d, age %s)",
			l.Task.Name, l.Task.ID, l.Worker.Index, l.Worker.PID, l.Task.Age.Round(time.Millisecond))
	}
	return b.String()
}
