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

// Config is what a Server needs. The functions run in the worker, on its own goroutines, must
// be safe for concurrent use, and should not block.
type Config struct {
	Index          int
	Generation     uint64
	Row            sharedstate.WorkerRow
	Table          *sharedstate.Table
	Listener       *net.UnixListener // stays open
	MaxPackageSize int               // bytes of a whole frame; 0: the default
	FrameTimeout   time.Duration     // for the rest of a frame that has begun; 0: 1 s
	DrainGrace     time.Duration     // for a client's half-close, where closing the reading side is no barrier; 0: 1 s
	SoftTimeLimit  time.Duration     // 0: none
	TimeLimit      time.Duration     // 0: none
	Recycle        Recycle
	Processors     Processors // Share is set already
	// Lookup finds a task type: ok false when it is unknown or not allowed, why says which. A
	// type that was found once is not looked up again.
	Lookup func(name []byte) (d Decoder, ok bool, why string)
	// OnException is told of failures that no task handler settled; nil: only logged.
	OnException func(Failure)
	Logger      *slog.Logger // nil: slog.Default
	// OnSoftLimit and OnHardLimit tell the parent, at most once a task each, and may block.
	OnSoftLimit func(Overdue)
	OnHardLimit func(Overdue)
	// OnDrift is told when the in-flight records and the row's running disagree.
	OnDrift func(records, running int)
	// OnSuspect is told of ten failures in a row that are the worker's own, and of each ten
	// more; suspect.go says what counts.
	OnSuspect func(last error)
	// OnRecycle is told, once, that the worker wants a successor, and by which limit. It may block.
	OnRecycle func(reason tasktype.Reason)
	// OnLarge is called at the first request or result of 16 KiB or more, which waits for it.
	OnLarge func()
	// Fault, where it is not nil, is asked for each package and says whether the server dies of
	// it. It is for pools inside one process, in tests.
	Fault func(task string) Fault
}

// A Server serves one listener. The row's counters are its own.
type Server struct {
	cfg           Config
	log           *slog.Logger
	greeting      []byte
	epoch         time.Time // one instant on two clocks
	epochMono     int64
	barrier       bool // CloseRead is exact here
	answerTimeout time.Duration
	types         atomic.Pointer[map[string]*taskType]
	buffers       buffers
	runners       runners
	large         sync.Once
	fastFailures  atomic.Int32
	wg            sync.WaitGroup // readers, the watch, and what they start

	draining chan struct{} // closed when the drain begins
	stopped  chan struct{} // closed when no connection is accepted any more
	killed   chan struct{} // closed by Kill
	wake     chan struct{} // for the watch: something is due earlier than it knows
	changed  chan struct{} // for the end of Serve: the drain's limit or what still runs has changed

	mu         sync.Mutex
	conns      map[*conn]struct{}
	running    callList
	watch      schedule
	drifted    bool  // what the last audit found; the watch alone uses it
	processors int   // GOMAXPROCS, as far as it was set here; the watch alone uses it
	dumpAfter  int64 // when the next dump may be taken
	recycle    recycling
	drain      drainState
}

// A taskType is a task type that was looked up.
type taskType struct {
	name   string
	decode Decoder
	large  atomic.Int64 // bytes of its last answer, when that was large; else 0
}

// New makes a Server; it does nothing before Serve.
func New(cfg Config) *Server {
	if cfg.MaxPackageSize == 0 {
		cfg.MaxPackageSize = protocol.DefaultPackageSize
	}
	if cfg.FrameTimeout <= 0 {
		cfg.FrameTimeout = time.Second
	}
	if cfg.DrainGrace <= 0 {
		cfg.DrainGrace = time.Second
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

// Ready sets the row to accepting: from now on, once the parent has made it current, clients
// may choose it. No connection is accepted yet. After Drain it does nothing.
func (s *Server) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drain.begun {
		s.cfg.Row.SetAccepting(true)
	}
}

// Serve calls listen again on the inherited socket and accepts until Drain. It returns when the
// drain is complete: last answers sent, connections closed, no goroutine left. The error names
// what still ran at the drain's limit; those tasks run on, and use the row and the table, until
// the process ends. Serve is called once.
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

// accept takes connections until the drain begins. It does nothing with them itself: one that
// says nothing, or garbage, holds up nobody. An error that may pass, such as a lack of
// descriptors, is waited out; the connections stay in the backlog.
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

// pause waits for d or the drain.
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
	c.owed.Store(1)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	if s.isKilled() {
		_ = nc.Close()
	}
	s.mu.Unlock()
	s.wg.Go(c.serve)
}

// ended forgets a connection that is closed.
func (s *Server) ended(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.noticeEmpty()
}

// typeOf finds a task type, without a lock and without an allocation once it was found before.
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

// deadline is an instant of CLOCK_MONOTONIC as a time.
func (s *Server) deadline(mono int64) time.Time {
	if mono == 0 {
		return time.Time{}
	}
	return s.epoch.Add(time.Duration(mono - s.epochMono))
}
