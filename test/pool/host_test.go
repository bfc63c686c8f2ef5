package pool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// onWorkerStart returns what the workers of a pool do before they accept.
func onWorkerStart(what string) func(context.Context, task.Worker) error {
	verb, object, _ := strings.Cut(what, " ")
	return func(_ context.Context, w task.Worker) error {
		switch verb {
		case "report":
			fmt.Fprintf(os.Stderr, "OnWorkerStart index=%d pid=%d\n", w.Index, w.PID)
		case "fail":
			return errors.New("no database today")
		case "panic":
			panic("no luck today")
		case "exit":
			fmt.Fprintln(os.Stderr, "my last words")
			os.Exit(7)
		case "unless": // it fails as long as the file is missing
			if _, err := os.Stat(object); err != nil {
				return errors.New("the file is missing")
			}
		case "until": // it waits as long as the file is missing
			for _, err := os.Stat(object); err != nil; _, err = os.Stat(object) {
				pause()
			}
		case "take": // it waits as long as the file is missing, and removes it
			for os.Remove(object) != nil {
				pause()
			}
		case "hang":
			select {}
		}
		return nil
	}
}

// logged waits until the pool's log has the line n times.
func (p *pool) logged(line string, n int) {
	p.t.Helper()
	eventually(p.t, func() bool { return strings.Count(p.log.String(), line) >= n }, func() string {
		return fmt.Sprintf("want %d times %q in\n%s", n, line, p.log.Tail())
	})
	assert.Equal(p.t, n, strings.Count(p.log.String(), line), "%q", line)
}

// dial connects to p as another program would.
func dial(t *testing.T, p *pool) *task.Client {
	t.Helper()
	c, err := task.Dial(t.Context(), task.Config{TempDir: p.dir, ServerName: p.Config().ServerName})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// stop stops a process with SIGSTOP until resume is called.
func stop(t *testing.T, pid int) (resume func()) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	resume = func() { syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	eventually(t, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(rest, "T")
	}, func() string { return "the process does not stop" })
	return resume
}

// rawStatus sends bytes to worker 0 and returns the status of the answer.
func rawStatus(t *testing.T, p *pool, frame []byte) task.Status {
	t.Helper()
	c, err := net.Dial("unix", p.dir+"/"+p.Config().ServerName+".TaskWorker.0.sock")
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(waitLimit))
	_, err = c.Write(frame)
	require.NoError(t, err)
	require.NoError(t, c.(*net.UnixConn).CloseWrite())
	for {
		r := readResponse(t, c)
		if r.ID == 0 && r.OK {
			continue // the greeting
		}
		return task.Status(r.Status)
	}
}

// A host is a program with a pool of its own, which a test can kill.
type host struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err *testsync.Buffer
}

type hostConfig struct {
	Kind   string // what runs, see runHost
	Dir    string
	Name   string
	Slots  int
	Number int
	Drain  time.Duration

	OnStart string // see onWorkerStart
}

// startHost runs this binary as a host and waits until its pool accepts.
func startHost(t *testing.T, cfg hostConfig) *host {
	t.Helper()
	h := newHost(t, cfg)
	assert.Equal(t, "ready", h.line())
	return h
}

// newHost runs this binary as a host, under another command if wrap names one.
func newHost(t *testing.T, cfg hostConfig, wrap ...string) *host {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = shortDir(t)
	}
	if cfg.Name == "" {
		cfg.Name = "h"
	}
	b, err := json.Marshal(cfg)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	argv := append(wrap, self)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "TEST_HOST="+string(b), "GORACE=atexit_sleep_ms=0")
	return runHostCommand(t, cmd)
}

// runHostCommand starts a host whose pool the test talks to by lines.
func runHostCommand(t *testing.T, cmd *exec.Cmd) *host {
	t.Helper()
	h := &host{t: t, cmd: cmd, err: &testsync.Buffer{}}
	var err error
	h.cmd.Stderr = h.err
	h.cmd.WaitDelay = time.Second
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.in, err = h.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	h.out = bufio.NewScanner(out)
	require.NoError(t, h.cmd.Start())
	t.Cleanup(func() {
		h.cmd.Process.Kill()
		h.cmd.Wait()
		if t.Failed() {
			t.Logf("the end of the host's stderr:\n%s", h.err.Tail())
		}
	})
	return h
}

// line returns the host's next line.
func (h *host) line() string {
	h.t.Helper()
	got := make(chan string, 1)
	go func() {
		if h.out.Scan() {
			got <- h.out.Text()
		}
		close(got)
	}()
	select {
	case s := <-got:
		return s
	case <-time.After(waitLimit):
		require.FailNow(h.t, "the host is silent")
		return ""
	}
}

func (h *host) say(line string) { fmt.Fprintln(h.in, line) }

// workers asks the host for its workers' pids.
func (h *host) workers() []int {
	h.t.Helper()
	h.say("workers")
	var pids []int
	require.NoError(h.t, json.Unmarshal([]byte(h.line()), &pids))
	return pids
}

// runHost is the host's main: it starts a pool and obeys its stdin.
func runHost(config string) int {
	var cfg hostConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	switch cfg.Kind {
	case "dial":
		return dialAndCall(cfg)
	case "caller":
		return callOnCommand(cfg)
	}
	pc := poolConfig(cfg.Name, cfg.OnStart)
	pc.TempDir = cfg.Dir
	pc.WorkerNum, pc.MaxRunningNum, pc.DrainTimeout = cfg.Number, cfg.Slots, cfg.Drain
	task.RunIfWorker(pc)
	p, err := task.New(pc)
	if err == nil {
		err = p.Start(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if cfg.Kind == "signals" {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		go obeySignals(signals, p)
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		obey(p, in.Text())
	}
	return 0
}

// obey carries out a line from the test and prints a line in answer.
func obey(p *task.Task, line string) {
	command, arg, _ := strings.Cut(line, " ")
	switch command {
	case "workers":
		pids := []int{}
		for _, s := range p.Status() {
			pids = append(pids, s.PID)
		}
		json.NewEncoder(os.Stdout).Encode(pids)
	case "hold":
		_, err := p.Async(context.Background(), Hold{Addr: arg})
		fmt.Println(err)
	case "limited":
		_, err := p.Async(context.Background(), Hold{Addr: arg}, task.WithTimeLimit(0, 2*time.Second))
		fmt.Println(err)
	case "stuck":
		_, err := p.Async(context.Background(), Stuck{Addr: arg})
		fmt.Println(err)
	case "noisy":
		_, err := p.Async(context.Background(), Noisy{Addr: arg})
		fmt.Println(err)
	case "echo":
		_, err := p.Sync(context.Background(), Echo{1})
		fmt.Println(err)
	case "pid":
		fmt.Println(os.Getpid())
	case "term":
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			fmt.Println(err)
		}
	case "threads":
		useThreads()
		fmt.Println("done")
	case "shutdown":
		fmt.Println(p.Shutdown(context.Background()))
	}
}

// dialAndCall is a host that only calls another process's pool.
func dialAndCall(cfg hostConfig) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := task.Dial(ctx, task.Config{TempDir: cfg.Dir, ServerName: cfg.Name})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer c.Close()
	if _, err := c.Sync(ctx, Echo{1}); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("called")
	return 0
}

// callOnCommand is a host that calls another process's pool when it is told to.
func callOnCommand(cfg hostConfig) int {
	c, err := task.Dial(context.Background(), task.Config{TempDir: cfg.Dir, ServerName: cfg.Name})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer c.Close()
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		_, err := c.Sync(context.Background(), Hold{Addr: in.Text()}, task.WithTimeout(waitLimit), task.WithWait(waitLimit))
		fmt.Println(err)
	}
	return 0
}

// obeySignals is what a host does about its signals: it says so, and ends at SIGTERM.
func obeySignals(signals <-chan os.Signal, p *task.Task) {
	for s := range signals {
		if s == syscall.SIGTERM {
			if err := p.Shutdown(context.Background()); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(s)
			os.Exit(0)
		}
		fmt.Println(s)
	}
}
