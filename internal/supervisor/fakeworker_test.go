package supervisor

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/sharedstate"
)

// envBehaviour tells the workers of a test how to misbehave at boot; see boot.
const envBehaviour = "SUPERVISOR_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(control.EnvMarker) != "" {
		os.Exit(work())
	}
	if os.Getenv(envHost) != "" {
		os.Exit(host())
	}
	os.Exit(m.Run())
}

// A fakeWorker speaks the control messages and, on its socket, the commands of serve; it runs no
// tasks.
type fakeWorker struct {
	handover *control.Handover
	conn     *control.Conn
	row      sharedstate.WorkerRow
	listener *net.UnixListener
	deaf     bool // ignores drains

	accepting chan struct{}  // closed when it accepts no more
	wait      sync.WaitGroup // for the connections
}

// work is the life of a worker process.
func work() int {
	sys.AdoptFiles(control.NumFDs)
	os.Unsetenv(control.EnvMarker)
	c, err := net.FileConn(os.NewFile(control.FDControl, "control"))
	must(err)
	table, err := sharedstate.Open(os.NewFile(control.FDTable, "table"), true)
	must(err)
	l, err := net.FileListener(os.NewFile(control.FDListener, "listener"))
	must(err)
	w := &fakeWorker{conn: control.NewConn(c), listener: l.(*net.UnixListener)}
	m, err := w.conn.Receive()
	must(err)
	w.handover, w.row = m.Handover, table.WorkerRow(m.Handover.Row)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if code := w.boot(os.Getenv(envBehaviour)); code >= 0 {
		return code
	}
	w.row.SetAccepting(true)
	w.say(control.Message{Kind: control.KindReady, Names: m.Handover.Tasks})
	orders := make(chan control.Message)
	go func() {
		defer close(orders)
		for {
			m, err := w.conn.Receive()
			if err != nil {
				return
			}
			orders <- m
		}
	}()
	for {
		select {
		case m, ok := <-orders:
			if !ok {
				return 0
			}
			if m.Kind == control.KindAccept {
				w.accept()
			}
			if m.Kind == control.KindDrain && !w.deaf {
				return w.drain()
			}
		case <-signals:
			w.say(control.Message{Kind: control.KindDraining, Reason: "signal"})
			return w.drain()
		}
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "test worker:", err)
		os.Exit(70)
	}
}

func (w *fakeWorker) say(m control.Message) { must(w.conn.Send(m)) }

// boot does one thing: "exit N", "panic", "say-no TEXT", "silent", "sleep D", or "if-file FILE "
// and one of them.
func (w *fakeWorker) boot(behaviour string) int {
	verb, rest, _ := strings.Cut(behaviour, " ")
	switch verb {
	case "if-file":
		file, rest, _ := strings.Cut(rest, " ")
		if _, err := os.Stat(file); err == nil {
			return w.boot(rest)
		}
	case "index":
		index, rest, _ := strings.Cut(rest, " ")
		if strconv.Itoa(w.handover.Index) == index {
			return w.boot(rest)
		}
	case "exit":
		fmt.Fprintln(os.Stderr, "exits at boot")
		code, _ := strconv.Atoi(rest)
		return code
	case "panic":
		panic("boom at boot")
	case "say-no":
		w.say(control.Message{Kind: control.KindBootError, Text: rest})
		return 1
	case "silent":
		select {}
	case "sleep":
		d, _ := time.ParseDuration(rest)
		time.Sleep(d)
	case "forget-tasks":
		w.handover.Tasks = nil
	}
	return -1
}

func (w *fakeWorker) accept() {
	must(sys.Relisten(w.listener))
	w.accepting = make(chan struct{})
	go func() {
		defer close(w.accepting)
		for {
			c, err := w.listener.Accept()
			if err != nil {
				return
			}
			w.wait.Go(func() { w.serve(c) })
		}
	}()
	w.say(control.Message{Kind: control.KindAccepting})
}

func (w *fakeWorker) drain() int {
	w.row.SetAccepting(false)
	w.listener.Close()
	if w.accepting != nil {
		<-w.accepting
	}
	w.say(control.Message{Kind: control.KindStopped})
	w.wait.Wait()
	for w.row.Running() > 0 {
		time.Sleep(time.Millisecond)
	}
	return 0
}

// serve answers "who" with the pid, and does what the line says otherwise.
func (w *fakeWorker) serve(c net.Conn) {
	defer c.Close()
	line, _ := bufio.NewReader(c).ReadString('\n')
	verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	answer := strconv.Itoa(os.Getpid())
	switch verb {
	case "exit":
		code, _ := strconv.Atoi(rest)
		os.Exit(code)
	case "print":
		fmt.Fprintln(os.Stdout, rest)
	case "die-printing":
		fmt.Fprintln(os.Stderr, rest)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "flood":
		n, _ := strconv.Atoi(rest)
		chunk := strings.Repeat("x", 1023) + "\n"
		for range n {
			fmt.Fprint(os.Stdout, chunk)
		}
	case "number": // lines of stderr
		numberLines(rest)
	case "number-and-panic":
		numberLines(rest)
		panic("the last straw")
	case "task":
		w.row.Admit()
		w.row.Record(uint64(os.Getpid()), 1, rest, sys.Now())
	case "end-task":
		w.row.Release(sharedstate.Succeeded)
	case "deaf":
		w.deaf = true
	case "tell":
		kind, reason, _ := strings.Cut(rest, " ")
		w.say(control.Message{Kind: control.Kind(kind), Reason: reason, TaskID: 7, Task: "stuck"})
	case "grandchild": // that leaves the group and holds our output
		cmd := exec.Command("sleep", "60")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: rest == "setsid"}
		must(cmd.Start())
		answer = strconv.Itoa(cmd.Process.Pid)
	case "env":
		answer = strings.Join(os.Environ(), "|")
	case "files":
		answer = openFiles()
	}
	fmt.Fprintln(c, answer)
}

func numberLines(n string) {
	count, _ := strconv.Atoi(n)
	for i := range count {
		fmt.Fprintf(os.Stderr, "line %d. %s\n", i, strings.Repeat("x", 300))
	}
}

func openFiles() string {
	entries, err := os.ReadDir("/proc/self/fd")
	must(err)
	var names []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			names = append(names, e.Name()+"="+target)
		}
	}
	return strings.Join(names, "|")
}
