package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	quickLook  = 5 * time.Millisecond   // between looks …
	quickFor   = 200 * time.Millisecond // … for so long after a wake-up or a job
	houseEvery = time.Second            // between readings of the control table and sweeps
	storeEvery = time.Minute            // between sweeps of what layers left in the store
	lastCall   = 500 * time.Millisecond // for interrupted handlers to return
)

type counter struct{ atomic.Int64 }

// A session is one run of a worker, from its first look for jobs to the last one stored.
type session struct {
	*Worker
	ctx        context.Context // the caller's
	base       context.Context // of what must outlive it
	limit      int
	untilEmpty bool
	taken      int
	from       map[level]place // where the last jobs were found

	mu      sync.Mutex
	held    map[int64]*delivery // reserved and not yet stored
	running int                 // handlers
	closed  bool                // nothing is stored any more

	changed  chan struct{} // a handler returned, or something was stored
	wake     chan struct{}
	settler  *settler
	crew     crew               // runs the jobs and their handlers
	keeping  context.CancelFunc // ends renewals and wakers
	services sync.WaitGroup
	calls    sync.WaitGroup  // of Failed methods
	called   context.Context // theirs
	uncall   context.CancelCauseFunc

	control   control
	restart   int64 // at the beginning
	houseAt   time.Time
	storeAt   time.Time
	quickTill time.Time
	pause     time.Duration
}

func newSession(ctx context.Context, w *Worker, limit int, untilEmpty bool) *session {
	s := &session{
		Worker: w, ctx: ctx, base: context.WithoutCancel(ctx), limit: limit, untilEmpty: untilEmpty,
		storeAt: time.Now().Add(storeEvery), held: map[int64]*delivery{}, from: map[level]place{}, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	s.called, s.uncall = context.WithCancelCause(s.base)
	s.settler = newSettler(s)
	services, cancel := context.WithCancel(s.base)
	s.keeping = cancel
	s.crew = crew{next: make(chan func()), over: services.Done()}
	s.services.Go(func() { s.keepLeases(services) })
	if !untilEmpty {
		for _, waker := range w.wakers {
			s.services.Go(func() { s.listen(services, waker) })
		}
	}
	return s
}

// run takes jobs until there is a reason to stop. What it took may still run when it returns.
func (s *session) run() error {
	defer s.q.bell.join(s.wake)()
	first := true
	for failures := 0; ; {
		if s.ctx.Err() != nil || stopped(s.stop) || s.taken >= s.limit {
			return nil
		}
		idle := s.idle() // before the look: what ends during it may be due again
		took, full, err := s.look(first)
		switch {
		case err == nil:
			failures, first = 0, false
		case errors.Is(err, ErrRestart):
			return err
		case s.ctx.Err() != nil:
			return nil
		case s.untilEmpty || errors.Is(err, ErrSchema):
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

// look does what is due of the housekeeping and takes as many jobs as there is room for. full: there was none.
func (s *session) look(first bool) (took int, full bool, err error) {
	// Not the caller's context: a claim that it cut off might have reserved jobs for nobody.
	ctx, cancel := context.WithTimeout(s.base, s.query)
	defer cancel()
	if s.untilEmpty && s.idle() || !time.Now().Before(s.houseAt) {
		if err := s.house(ctx, first); err != nil {
			return 0, false, err
		}
	}
	room := min(s.room(), s.limit-s.taken)
	if room == 0 {
		return 0, true, nil
	}
	queues := draw(s.queues, s.control.pauses)
	if len(queues) == 0 {
		return 0, false, nil
	}
	c := claim{queues: queues, limit: room, lease: s.lease, token: s.name + "." + strconv.FormatInt(s.claims.Add(1), 36)}
	sent := time.Now()
	rows, err := s.take(ctx, c)
	if err != nil {
		return 0, false, err
	}
	s.taken += len(rows)
	for _, r := range rows {
		s.begin(r, sent.Add(s.lease-margin(s.lease)))
	}
	return len(rows), false, nil
}

// take claims jobs. It goes on from where it found the last ones: before them lie the rows of finished jobs that the
// database has not cleaned up, and each look would wade through them. What has come in there since, such as a push that
// was committed late, is found once a second, or when nothing else is.
func (s *session) take(ctx context.Context, c claim) ([]row, error) {
	c.from = s.from
	rows, err := s.q.claim(ctx, c)
	if err == nil && len(rows) == 0 && len(s.from) > 0 {
		clear(s.from)
		rows, err = s.q.claim(ctx, c)
	}
	for _, r := range slices.Backward(rows) {
		s.from[level{r.queue, r.priority}] = place{r.availableAt, r.id}
	}
	return rows, err
}

// house reads the control table and ends lapsed reservations.
func (s *session) house(ctx context.Context, first bool) (err error) {
	if err := s.readControl(ctx); err != nil {
		return err
	}
	if first {
		s.restart = s.control.restart
	}
	if s.control.restart > s.restart {
		return ErrRestart
	}
	ids, tokens := s.reserved()
	swept, err := s.q.sweep(ctx, s.runner.Policy, s.name, ids, tokens)
	for _, v := range swept {
		s.tell(v)
	}
	if len(s.control.cancelled) > 0 && err == nil {
		err = s.q.sweepControl(ctx)
	}
	if !first && err == nil && !time.Now().Before(s.storeAt) {
		s.storeAt = time.Now().Add(storeEvery)
		err = s.q.sweepStore(ctx)
	}
	s.houseAt = time.Now().Add(houseEvery)
	clear(s.from)
	return err
}

func (s *session) readControl(ctx context.Context) (err error) {
	if s.control, err = s.q.readControl(ctx); err == nil {
		s.cancelJobs(s.control.cancelled)
	}
	return err
}

func (s *session) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.concurrency - s.running
}

// idle reports whether nothing runs and all is stored.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0 && len(s.held) == 0
}

// await returns when there may be something to take or to do.
func (s *session) await(full bool, failures int) {
	wait := s.pauseFor(failures)
	if full {
		wait = houseEvery
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
				continue // for room, not for jobs
			}
		case <-changed:
		case <-timer.C:
		case <-s.stop:
		case <-s.ctx.Done():
		}
		return
	}
}

// pauseFor is the time until the next look: short for a while, then twice as long each time up to the floor.
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

// listen runs a waker again and again.
func (s *session) listen(ctx context.Context, waker Waker) {
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

// end waits until what was taken is done and stored, or may wait no longer, and returns the jobs that still run.
func (s *session) end() (abandoned []string) {
	over, done := s.expiry()
	defer done()
	house := time.NewTicker(houseEvery)
	defer house.Stop()
	for over.Err() == nil && !s.idle() {
		select {
		case <-s.changed:
		case <-over.Done():
		case <-house.C: // jobs can be cancelled still
			ctx, cancel := context.WithTimeout(s.base, min(s.query, houseEvery))
			if err := s.readControl(ctx); err != nil {
				s.q.logger.Warn("queue: control table was not read", "worker", s.name, "error", err)
			}
			cancel()
		}
	}
	s.settler.close()
	s.keeping()
	s.services.Wait()
	s.awaitHooks(over)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, d := range s.held {
		abandoned = append(abandoned, d.row.idText())
	}
	return abandoned
}

// expiry interrupts handlers and Failed methods when the grace or Shutdown's time is up. Its context ends when they are
// waited for no longer.
func (s *session) expiry() (over context.Context, done func()) {
	over, cancel := context.WithCancel(s.base)
	go func() {
		defer cancel()
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
