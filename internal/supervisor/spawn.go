package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/lifecycle"
	"github.com/taskd-go/task/internal/memstat"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// lingerLimit bounds the wait for the end of the output and of the channel of a dead worker: a
// grandchild that left the process group may hold them open. What the output holds is read anyhow.
const lingerLimit = 100 * time.Millisecond

// A child is one worker process. proc and conn are set before the machine gets its Spawned.
type child struct {
	lifecycle.Key
	row    sharedstate.ParentRow
	proc   *sys.Process
	conn   *control.Conn
	stderr tail
}

// spawn starts a worker. The child has a goroutine of its own, which forks the process and watches
// it to its end.
func (s *Supervisor) spawn(a lifecycle.Spawn) {
	row, err := s.table.Allocate(a.Index, a.Generation)
	if err != nil {
		s.todo = append(s.todo, lifecycle.SpawnFailed{Key: a.Key, Err: err})
		return
	}
	c := &child{Key: a.Key, row: row}
	s.children[a.Key] = c
	listener, err := duplicate(s.listeners[a.Index], "listener")
	if err != nil {
		s.todo = append(s.todo, lifecycle.SpawnFailed{Key: a.Key, Err: err})
		return
	}
	exe := s.executable[a.Build]
	s.wait.Go(func() {
		defer listener.Close()
		s.live(c, exe, listener)
	})
}

// live starts a worker process, watches it to its end, and posts each step.
func (s *Supervisor) live(c *child, exe, listener *os.File) {
	p, err := newPipes()
	if err == nil {
		err = s.fork(c, exe, listener, p)
	}
	if err != nil {
		p.close()
		s.post(lifecycle.SpawnFailed{Key: c.Key, Err: err})
		return
	}
	c.row.SetPID(c.proc.PID())
	s.post(lifecycle.Spawned{Key: c.Key, PID: c.proc.PID()})
	var readers sync.WaitGroup
	exited := make(chan struct{})
	stdout, stderr := &pipeEnd{p.stdout.r, maxPipe}, &pipeEnd{p.stderr.r, maxPipe}
	readers.Go(func() { s.outputs.copy(stdout, stream{c.Index, c.proc.PID(), "stdout"}, nil, exited) })
	readers.Go(func() { s.outputs.copy(stderr, stream{c.Index, c.proc.PID(), "stderr"}, &c.stderr, exited) })
	readers.Go(func() { s.listen(c) })

	c.proc.Exited()
	close(exited)
	c.proc.KillGroup()
	linger := time.AfterFunc(lingerLimit, func() {
		stdout.expire()
		stderr.expire()
		c.conn.Close()
	})
	readers.Wait()
	linger.Stop()
	p.close()
	c.conn.Close()
	end, known := c.proc.Reap()
	s.post(lifecycle.Exited{Key: c.Key, Exit: lifecycle.Exit{
		Signal: end.Signal, Code: end.Code, Known: known, Tasks: running(c.row.Row), Stderr: c.stderr.String(),
	}})
}

// running lists the tasks that hold a slot in row.
func running(row sharedstate.Row) []tasktype.RunningTask {
	var tasks []tasktype.RunningTask
	now := sys.Now()
	for _, t := range row.Tasks() {
		tasks = append(tasks, tasktype.RunningTask{ID: t.TaskID, Name: t.Name, Age: time.Duration(now - t.Started)})
	}
	return tasks
}

// fork starts the process and sends it the handover.
func (s *Supervisor) fork(c *child, exe, listener *os.File, p *pipes) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	proc, err := s.env.start(sys.Spawn{
		Exe:  exe,
		Argv: append([]string{s.title(c.Index)}, os.Args[1:]...),
		Env:  workerEnv(os.Environ(), s.cfg.Env, s.cfg.ServerName),
		Files: []*os.File{
			null,
			p.stdout.w,
			p.stderr.w,
			control.FDControl:  theirs,
			control.FDTable:    s.table.File(),
			control.FDListener: listener,
		},
	})
	if err != nil {
		ours.Close()
		return err
	}
	p.stdout.w.Close()
	p.stderr.w.Close()
	c.proc, c.conn = proc, control.NewConn(ours)
	// A worker that does not receive it runs into StartTimeout.
	_ = c.conn.Send(control.Message{Kind: control.KindHandover, Handover: s.handover(c)})
	return nil
}

// title returns what ps -f shows for a worker.
func (s *Supervisor) title(index int) string {
	return fmt.Sprintf("%s.TaskWorker.%d", s.cfg.ServerName, index)
}

func (s *Supervisor) handover(c *child) *control.Handover {
	return &control.Handover{
		Version:    control.Version,
		Build:      buildID(),
		ServerName: s.cfg.ServerName,
		TempDir:    s.cfg.TempDir,
		Arg0:       os.Args[0],
		Index:      c.Index,
		Generation: c.Generation,
		Row:        c.row.Number(),
		Title:      s.title(c.Index),
		Tasks:      s.cfg.Tasks,
		Allowed:    s.cfg.Allowed,
		Settings:   s.cfg.Settings,
	}
}

// listen posts the worker's messages until its channel ends.
func (s *Supervisor) listen(c *child) {
	for {
		m, err := c.conn.Receive()
		if err != nil {
			s.post(lifecycle.ChannelClosed{Key: c.Key})
			return
		}
		ev := lifecycle.Received{Key: c.Key, Message: m}
		if m.Task != "" {
			ev.Running = tasktype.RunningTask{ID: m.TaskID, Name: m.Task, Age: time.Duration(sys.Now() - m.Started)}
		}
		if m.Kind == control.KindReady && s.cfg.MaxWorkerMemory > 0 {
			ev.Resident = memstat.Resident(c.proc.PID())
		}
		s.post(ev)
	}
}

// workerEnv returns the environment of a worker: the variables of environ that allowed names, or
// all if it is nil, without this process's marker and with one for the worker.
func workerEnv(environ, allowed []string, serverName string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == control.EnvMarker || allowed != nil && !slices.Contains(allowed, name)
	})
	return append(env, fmt.Sprintf("%s=%d %s", control.EnvMarker, control.Version, serverName))
}

// buildID names the build of this program, "" if the linker stored none.
func buildID() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	id := info.Main.Path + "@" + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			id += " " + s.Value
		}
	}
	return id
}

// pipes carry a worker's output.
type pipes struct{ stdout, stderr struct{ r, w *os.File } }

func newPipes() (*pipes, error) {
	var p pipes
	var err error
	if p.stdout.r, p.stdout.w, err = os.Pipe(); err != nil {
		return &p, err
	}
	p.stderr.r, p.stderr.w, err = os.Pipe()
	return &p, err
}

// close ends the reads that wait. It may be called more than once.
func (p *pipes) close() {
	for _, f := range []*os.File{p.stdout.r, p.stdout.w, p.stderr.r, p.stderr.w} {
		if f != nil {
			f.Close()
		}
	}
}

func socketPair() (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // so that no fork comes between the pair and its close-on-exec
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	mine := os.NewFile(uintptr(fds[0]), "control")
	defer mine.Close()
	theirs = os.NewFile(uintptr(fds[1]), "control")
	if ours, err = net.FileConn(mine); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// duplicate returns a duplicate of c's descriptor. For a listener, its File method is no
// replacement: the fork makes that descriptor blocking, and with it the socket in all processes
// that share it.
func duplicate(c syscall.Conn, name string) (*os.File, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dup int
	var failed error
	err = raw.Control(func(fd uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if dup, failed = syscall.Dup(int(fd)); failed == nil {
			syscall.CloseOnExec(dup)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("duplicate the descriptor of %s: %w", name, err)
	}
	return os.NewFile(uintptr(dup), name), nil
}
