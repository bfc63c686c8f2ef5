package pool_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/taskd-go/task"
)

// The tasks that misbehave.

func init() {
	for _, r := range []task.Runner{Loop{}, Blocked{}, Family{}, RunOut{}, Stray{}} {
		task.Register(r)
	}
}

// Loop never yields.
type Loop struct{}

func (Loop) Run(context.Context, task.Info) (any, error) {
	for n := 0; ; n++ {
	}
}

// Blocked sits in a system call that does not return.
type Blocked struct{}

func (Blocked) Run(context.Context, task.Info) (any, error) {
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		return nil, err
	}
	_, err := syscall.Read(fds[0], make([]byte, 1))
	return nil, err
}

// Family starts processes that hold the worker's output, and their children, whose parents end, and
// blocks. Each reads Pipe, which is in its command line and has no writer but the test.
type Family struct {
	Addr, Pipe string
	Children   int
}

func (f Family) Run(_ context.Context, info task.Info) (any, error) {
	for range f.Children {
		cmd := exec.Command("sh", "-c", `cat "$0" & (cat "$0" & cat "$0" &) & exec cat "$0"`, f.Pipe)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, err
		}
	}
	c, err := net.Dial("unix", f.Addr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "%d %d %d\n", info.TaskID, info.WorkerIndex, os.Getpid())
	select {}
}

// RunOut fails as a task does in a process that has no descriptors left.
type RunOut struct{}

func (RunOut) Run(context.Context, task.Info) (any, error) {
	return nil, &os.PathError{Op: "open", Path: "anything", Err: syscall.EMFILE}
}

// Stray panics in a goroutine of its own and waits.
type Stray struct{ Words string }

func (s Stray) Run(context.Context, task.Info) (any, error) {
	go func() { panic(s.Words) }()
	select {}
}
