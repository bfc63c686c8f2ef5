package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

const (
	quickLook    = 5 * time.Millisecond   // between two looks, during quickFor
	quickFor     = 200 * time.Millisecond // after a wake-up or a job
	maintainEach = time.Second            // between two readings of the orders, and two sweeps
	lastCall     = 500 * time.Millisecond // for interrupted handlers to return
)

// A session is one call of Work, ProcessOne or WorkUntilEmpty, from its first look for jobs until
// the last completion is stored.
type session struct {
	*Worker
	ctx        context.Context // the caller's: its end stops the session
	base       context.Context // of calls of the store and of handlers, which outlive ctx
	limit      int
	untilEmpty bool
	taken      int
	consumer   backend.Consumer // nil until it was opened

	mu       sync.Mutex
	held     map[string]*delivery // by job: reserved, and the completion not stored yet
	running  int                  // handlers
	occupied int                  // slots; a job has one until its completion is handed over
	closed   bool                 // no more completions are stored

	changed    chan struct{} // a handler returned, or something was stored
	wake       chan struct{}
	completer  *completer
	goroutines goroutinePool           // run the jobs and their handlers
	serving    context.Context         // of renewals and wakers
	keeping    context.CancelFunc      // ends serving
	services   sync.WaitGroup          // of renewals and wakers
	calls      sync.WaitGroup          // of Failed methods
	called     context.Context         // of Failed methods
	uncall     context.CancelCauseFunc // ends called

	orders     backend.Orders
	restart    int64 // orders.Restart at the first look
	maintainAt time.Time
	stuck      []backend.Receipt // lapsed reservations that could not be ended
	stuckTill  time.Time         // when they are tried again
	quickTill  time.Time
	pause      time.Duration
}

func newSession(ctx context.Context, w *Worker, limit int, untilEmpty bool) *session {
	s := &session{
		Worker: w, ctx: ctx, base: context.WithoutCancel(ctx), limit: limit, untilEmpty: untilEmpty,
		held: map[string]*delivery{}, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	s.called, s.uncall = context.WithCancelCause(s.base)
	s.completer = newCompleter(s)
	services, cancel := context.WithCancel(s.base)
	s.serving, s.keeping = services, cancel
	s.goroutines = goroutinePool{next: make(chan func()), over: services.Done()}
	s.services.Go(func() { s.keepLeases(services) })
	return s
}

// run takes jobs until something stops it. When it returns, jobs that it took may still run.
func (s *session) run() error {
	defer s.q.workers.join(s.wake)()
	first := true
	for failures := 0; ; {
		if s.ctx.Err() != nil || stopped(s.stop) || s.taken >= s.limit {
			return nil
		}
		idle := s.idle() // read before the look: a job that ends during it may be due again
		took, full, err := s.look(first)
		switch {
		case err == nil:
			failures, first = 0, false
		case errors.Is(err, ErrRestart):
			return err
		case s.ctx.Err() != nil:
			return nil
		case s.untilEmpty || errors.Is(err, ErrSetup) || errors.Is(err, ErrUnsupported):
			return err
		default:
			failures++
			s.q.logger.WarnContext(s.ctx, "queue: look for jobs failed", "worker", s.name, "error", err, "failures", failures)
		}
		if took > 0 {
			s.quickTill = time.Now().Add(quickFor)
		}
		if s.untilEmpty && idle && took == 0 {
			return nil
		}
		if took == 0 || full {
			s.await(full, failures)
		}
	}
}

// look maintains the store if that is due, and takes as many jobs as slots are free. full reports
// that no slot was free.
func (s *session) look(first bool) (took int, full bool, err error) {
	// The caller's context must not end the call half way: jobs might stay reserved that nothing
	// runs.
	ctx, cancel := context.WithTimeout(s.base, s.query)
	defer cancel()
	if err := s.open(ctx); err != nil {
		return 0, false, err
	}
	if s.untilEmpty && s.idle() || !time.Now().Before(s.maintainAt) {
		if err := s.maintain(ctx, first); err != nil {
			return 0, false, err
		}
	}
	room := min(s.room(), s.limit-s.taken)
	if room == 0 {
		return 0, true, nil
	}
	queues := draw(s.queues, s.orders.Paused)
	if len(queues) == 0 {
		return 0, false, nil
	}
	sent := time.Now()
	received, err := s.consumer.Receive(ctx, backend.Want{Max: room, Queues: queues})
	if err != nil {
		return 0, false, err
	}
	s.taken += len(received)
	for _, d := range received {
		s.begin(d, sent.Add(s.lease-margin(s.lease)))
	}
	return len(received), false, nil
}

// open opens the consumer at the first look, or at a later one if that failed.
func (s *session) open(ctx context.Context) (err error) {
	if s.consumer == nil {
		s.consumer, err = s.q.backend.Open(ctx, backend.Session{
			Worker: s.name, Slots: min(s.concurrency, s.limit), Queues: s.queues, Lease: s.lease,
			Limit: max(s.runner.Timeout, 0),
		})
		if err == nil && !s.untilEmpty {
			s.listenTo(s.q.backend)
			s.listenTo(s.consumer)
		}
	}
	return err
}

// listenTo lets store wake the worker, if store is a Waker.
func (s *session) listenTo(store any) {
	if waker, ok := store.(backend.Waker); ok {
		s.services.Go(func() { s.listen(s.serving, waker) })
	}
}

// maintain reads the orders, ends lapsed reservations and lets the store tidy up.
func (s *session) maintain(ctx context.Context, first bool) (err error) {
	if err := s.readOrders(ctx); err != nil {
		return err
	}
	if first {
		s.restart = s.orders.Restart
	}
	if s.orders.Restart > s.restart {
		return ErrRestart
	}
	err = s.sweep(ctx)
	if t, ok := s.consumer.(backend.Tidier); ok && err == nil {
		err = t.Tidy(ctx, s.orders)
	}
	s.maintainAt = time.Now().Add(maintainEach)
	return err
}

func (s *session) readOrders(ctx context.Context) (err error) {
	if s.orders, err = s.q.orders(ctx); err == nil {
		s.cancelJobs(s.orders.Cancelled)
	}
	return err
}

func (s *session) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.concurrency - s.occupied
}

// busy reports whether a job runs.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running > 0
}

// idle reports whether all slots are free and all completions are stored.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.occupied == 0 && len(s.held) == 0
}

// await returns when there may be something to take or to maintain.
func (s *session) await(full bool, failures int) {
	wait := s.pauseFor(failures)
	if full {
		wait = maintainEach
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var changed <-chan struct{}
	if full || s.untilEmpty {
		changed = s.changed
	}
	for {
		select {
		case <-s.wake:
			s.quickTill = time.Now().Add(quickFor)
			if full {
				continue // it waits for a free slot, not for jobs
			}
		case <-changed:
		case <-timer.C:
		case <-s.stop:
		case <-s.ctx.Done():
		}
		return
	}
}

// pauseFor returns the time until the next look: short for a while, then twice as long each time,
// up to Poll.
func (s *session) pauseFor(failures int) time.Duration {
	switch {
	case failures > 0:
		s.pause = min(max(2*s.pause, s.poll), 20*s.poll)
	case time.Now().Before(s.quickTill):
		s.pause = min(quickLook, s.poll)
		return s.pause
	default:
		s.pause = min(max(2*s.pause, quickLook), s.poll)
	}
	return time.Duration(float64(s.pause) * (0.8 + 0.4*rand.Float64()))
}

// listen runs a waker, and runs it again when it returns.
func (s *session) listen(ctx context.Context, waker backend.Waker) {
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, 30*time.Second) {
		err := waker.Wait(ctx, func(string) { signal(s.wake) })
		if ctx.Err() != nil {
			return
		}
		s.q.logger.WarnContext(ctx, "queue: no wake-ups, looking at intervals only", "worker", s.name, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// end waits until the jobs that were taken are done and stored, or until expiry says to wait no
// longer. It returns the ids of the jobs that still run. err is what run returned.
func (s *session) end(err error) (abandoned []string) {
	told, tell := context.WithCancel(s.ctx)
	defer tell()
	over, done := s.expiry(told)
	defer done()
	orders := time.NewTicker(maintainEach)
	defer orders.Stop()
	for over.Err() == nil && !s.idle() {
		if err != nil || !s.busy() {
			tell() // only storing is left, or the run ended by an error
		}
		select {
		case <-s.changed:
		case <-over.Done():
		case <-orders.C: // jobs can still be cancelled
			ctx, cancel := context.WithTimeout(s.base, min(s.query, maintainEach))
			if err := s.readOrders(ctx); err != nil {
				s.q.logger.Warn("queue: orders were not read", "worker", s.name, "error", err)
			}
			cancel()
		}
	}
	s.completer.close()
	s.keeping()
	s.services.Wait()
	s.awaitHooks(over)
	s.closeConsumer()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, d := range s.held {
		abandoned = append(abandoned, d.ID)
	}
	return abandoned
}

// closeConsumer lets the consumer give back what Receive did not return.
func (s *session) closeConsumer() {
	if s.consumer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.base, s.query)
	defer cancel()
	if err := s.consumer.Close(ctx); err != nil {
		s.q.logger.Warn("queue: the consumer was not closed", "worker", s.name, "error", err)
	}
}

// expiry interrupts handlers and Failed methods when the time of the option Grace or the context of
// Shutdown ends. That time begins when told ends or Shutdown is called; a run that took its last
// job waits for the job. The context over ends lastCall after the interruption: then end waits for
// the handlers no longer.
func (s *session) expiry(told context.Context) (over context.Context, done func()) {
	over, cancel := context.WithCancel(s.base)
	go func() {
		defer cancel()
		select {
		case <-told.Done():
		case <-s.stop:
		case <-over.Done():
			return
		}
		grace := time.NewTimer(s.grace)
		defer grace.Stop()
		select {
		case <-grace.C:
		case <-s.hurry:
		case <-over.Done():
			return
		}
		s.interrupt()
		select {
		case <-time.After(lastCall):
		case <-over.Done():
		}
	}()
	return over, cancel
}

// awaitHooks waits for the Failed methods that run.
func (s *session) awaitHooks(over context.Context) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		s.calls.Wait()
	}()
	select {
	case <-returned:
	case <-over.Done():
		s.q.logger.Warn("queue: Failed methods still run", "worker", s.name)
	}
}
