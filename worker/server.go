package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/sys"
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
	"github.com/taskd-go/task/tasktype"
)

// Defaults of a Config.
const (
	DefaultFrameTimeout = time.Second
	DefaultDrainGrace   = time.Second
)

// A Config configures a Server. The functions run on the server's goroutines. They must be safe for
// concurrent use and should not block.
type Config struct {
	Index          int
	Generation     uint64
	Row            sharedstate.WorkerRow
	Table          *sharedstate.Table
	Listener       *net.UnixListener // the Server does not close it
	MaxPackageSize int               // bytes of a whole frame; 0: the default
	FrameTimeout   time.Duration     // bounds the rest of a frame that has begun; 0: the default
	DrainGrace     time.Duration     // bounds the wait for a half-close if sys.BarrierRead is false; 0: the default
	SoftTimeLimit  time.Duration     // 0: no limit
	TimeLimit      time.Duration     // 0: no limit
	Recycle        Recycle
	Processors     Processors // Share is set already
	// Lookup finds a task type. If the type is unknown or not allowed, ok is false and why says
	// which. The server looks a type up once.
	Lookup func(name []byte) (d Decoder, ok bool, why string)
	// OnException gets the failures that no task's OnException handled. nil: they are only logged.
	OnException func(Failure)
	Logger      *slog.Logger // nil: slog.Default
	// OnSoftLimit and OnHardLimit get a task that passes its limit, at most once each. They may
	// block.
	OnSoftLimit func(Overdue)
	OnHardLimit func(Overdue)
	// OnDrift is called when the in-flight records and the row's running tasks disagree.
	OnDrift func(records, running int)
	// OnSuspect is called after ten failures in a row of the worker itself, and after each ten
	// more; suspect.go says which failures count.
	OnSuspect func(last error)
	// OnRecycle is called once, when the worker passes a limit of Recycle. It may block.
	OnRecycle func(reason tasktype.Reason)
	// OnLarge is called at the first request or result of at least 16 KiB, which waits for it.
	OnLarge func()
	// Fault, if not nil, says for each package whether the server simulates a crash. Package
	// tasktest uses it.
	Fault func(task string) Fault
}

// A Server serves one listener and counts in one row.
type Server struct {
	cfg           Config
	log           *slog.Logger
	greeting      []byte
	epoch         time.Time // the same instant as epochMono, on Go's clock
	epochMono     int64
	barrier       bool // sys.BarrierRead, unless a test sets it
	answerTimeout time.Duration
	types         atomic.Pointer[map[string]*taskType]
	buffers       buffers
	runners       runners
	large         sync.Once
	fastFailures  atomic.Int32
	wg            sync.WaitGroup // readers, the watch, and the goroutines that they start

	draining chan struct{} // closed when the drain begins
	stopped  chan struct{} // closed when the server accepts no more connections
	killed   chan struct{} // closed by Kill
	wake     chan struct{} // tells the watch that something is due earlier than it knows
	changed  chan struct{} // tells awaitEnd that the drain's limit or the running tasks have changed

	mu         sync.Mutex
	conns      map[*conn]struct{}
	running    callList
	watch      schedule
	drifted    bool  // what the last audit found; the watch alone uses it
	processors int   // the GOMAXPROCS that the server set; the watch alone uses it
	dumpAfter  int64 // when the next dump may be taken
	recycle    recycling
	drain      drainState
}

// A taskType is a task type that Lookup found.
type taskType struct {
	name   string
	decode Decoder
	large  atomic.Int64 // bytes of its last answer if that was large, else 0
}

// New makes a Server. It does nothing until Serve.
func New(cfg Config) *Server {
	if cfg.MaxPackageSize == 0 {
		cfg.MaxPackageSize = protocol.DefaultPackageSize
	}
	if cfg.FrameTimeout <= 0 {
		cfg.FrameTimeout = DefaultFrameTimeout
	}
	if cfg.DrainGrace <= 0 {
		cfg.DrainGrace = DefaultDrainGrace
	}
	s := &Server{
		cfg:           cfg,
		log:           cfg.Logger,
		epoch:         time.Now(),
		epochMono:     sys.Now(),
		barrier:       sys.BarrierRead,
		answerTimeout: answerTimeout,
		draining:      make(chan struct{}),
		stopped:       make(chan struct{}),
		killed:        make(chan struct{}),
		wake:          make(chan struct{}, 1),
		changed:       make(chan struct{}, 1),
		conns:         make(map[*conn]struct{}),
		processors:    cfg.Processors.Share,
		recycle:       newRecycling(cfg.Recycle),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.types.Store(new(map[string]*taskType))
	s.greeting = protocol.AppendGreeting(nil, protocol.Greeting{
		Index:          cfg.Index,
		Generation:     cfg.Generation,
		PID:            os.Getpid(),
		MaxPackageSize: cfg.MaxPackageSize,
	})
	return s
}

// Ready sets the row to accepting, so that clients may choose it once the parent has made it
// current. The server accepts no connection before Serve. After Drain, Ready does nothing.
func (s *Server) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drain.begun {
		s.cfg.Row.SetAccepting(true)
	}
}

// Serve calls listen again on the inherited socket and accepts connections until Drain. It returns
// when the drain is complete: the last answers are sent, the connections are closed, no goroutine
// is left. Its error names the tasks that still ran at the drain's limit; they run on, and use the
// row and the table, until the process ends. Call Serve once.
func (s *Server) Serve() error {
	watchEnd := make(chan struct{})
	s.wg.Go(func() { s.runWatch(watchEnd) })
	s.beginAge()
	lost := s.accept()
	if lost != nil {
		s.Drain(-1, false)
	}
	end := s.refuseBacklog()
	close(s.stopped)
	s.drainConns()
	err := s.awaitEnd()
	close(watchEnd)
	s.runners.close()
	end()
	if err == nil {
		s.wg.Wait()
		s.runners.wg.Wait()
	}
	return errors.Join(lost, err)
}

// accept accepts connections until the drain begins and hands each to a goroutine, so that a silent
// one holds up no other. After an error that may pass, such as a lack of descriptors, it waits and
// tries again; the connections stay in the backlog.
func (s *Server) accept() error {
	if s.isDraining() && !s.atEnd() {
		return nil
	}
	if err := sys.Relisten(s.cfg.Listener); err != nil {
		return fmt.Errorf("worker %d: listen again on %s: %w", s.cfg.Index, s.cfg.Listener.Addr(), err)
	}
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause := shortest
	for !s.isDraining() {
		nc, err := s.cfg.Listener.AcceptUnix()
		switch {
		case err == nil:
			pause = shortest
			s.begin(nc)
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("worker %d: the listener was closed: %w", s.cfg.Index, err)
		case errors.Is(err, os.ErrDeadlineExceeded): // set by Drain
		default:
			s.log.Error("cannot accept a connection", "worker", s.cfg.Index, "err", err, "pause", pause)
			s.ownFailure(err)
			s.pause(pause)
			pause = min(2*pause, longest)
		}
	}
	return nil
}

// pause waits for d or until the drain begins.
func (s *Server) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.draining:
	}
}

func (s *Server) begin(nc *net.UnixConn) {
	c := &conn{s: s, nc: nc, place: -1}
	c.pending.Store(1)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	if s.isKilled() {
		_ = nc.Close()
	}
	s.mu.Unlock()
	s.wg.Go(c.serve)
}

// ended removes a connection that is closed.
func (s *Server) ended(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.noticeEmpty()
}

// typeOf finds a task type. If it found the type before, it takes no lock and allocates nothing.
func (s *Server) typeOf(name []byte) (t *taskType, why string) {
	if t := (*s.types.Load())[string(name)]; t != nil {
		return t, ""
	}
	d, ok, why := s.cfg.Lookup(name)
	if !ok {
		return nil, why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	types := maps.Clone(*s.types.Load())
	if types == nil {
		types = make(map[string]*taskType)
	}
	t = &taskType{name: string(name), decode: d}
	types[t.name] = t
	s.types.Store(&types)
	return t, ""
}

// deadline returns an instant of CLOCK_MONOTONIC as a time.Time.
func (s *Server) deadline(mono int64) time.Time {
	if mono == 0 {
		return time.Time{}
	}
	return s.epoch.Add(time.Duration(mono - s.epochMono))
}
