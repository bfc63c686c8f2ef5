// Package queuefixture has what the tests of queues and of their stores share: a queue on a clock
// that a test moves, jobs that do what a test says, and workers that stop where a test wants them
// to.
package queuefixture

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/backend"
)

// Epoch is second 0 of a Fixture's clock, in Unix milliseconds.
const Epoch = int64(1_700_000_000_000)

// Limit is how long a test waits for something that must come.
const Limit = 20 * time.Second

// Quiet drops what is logged.
var Quiet = slog.New(slog.DiscardHandler)

// A Harness is a store under test; see queuetest.Harness.
type Harness struct {
	Open     func(t testing.TB, how Opening) backend.Backend
	SetClock func(t testing.TB, now time.Time)
	Clear    func(t testing.TB)
	Insert   func(t testing.TB, queue string, payload []byte)
}

// An Opening says how a Harness opens its store.
type Opening struct{ OwnClock, Wakes bool }

// A Fixture is an empty store for one test, with a clock that stands still until the test moves it.
type Fixture struct {
	*testing.T
	Harness
	Now int64 // ms
	Q   *queue.Queue
}

// New returns the Fixture of a test.
func New(t *testing.T, h Harness) *Fixture {
	s := &Fixture{T: t, Harness: h}
	h.Clear(t)
	s.At(0)
	s.Q = s.Open()
	return s
}

// Sub returns a Fixture for a test inside this one.
func (s *Fixture) Sub(t *testing.T) *Fixture { return New(t, s.Harness) }

// Open returns a queue of its own on the store and its clock, as another process would have one.
func (s *Fixture) Open() *queue.Queue {
	s.Helper()
	return Over(s.Harness.Open(s, Opening{}))
}

// OpenLive returns a queue on the store's own clock.
func (s *Fixture) OpenLive() *queue.Queue {
	s.Helper()
	return Over(s.Harness.Open(s, Opening{OwnClock: true}))
}

// OpenWaking returns a queue whose workers are woken by pushes of other processes. It skips the
// test where there is none.
func (s *Fixture) OpenWaking() *queue.Queue {
	s.Helper()
	store := s.Harness.Open(s, Opening{Wakes: true})
	if _, ok := store.(backend.Waker); !ok {
		s.Skip("this store does not wake workers")
	}
	return Over(store)
}

// Over returns a queue over a store that logs nothing.
func Over(b backend.Backend) *queue.Queue { return queue.New(b, queue.Logger(Quiet)) }

// At moves the clock to a second. It skips the test if the store's clock cannot be moved.
func (s *Fixture) At(second float64) {
	s.Helper()
	s.Now = Epoch + int64(second*1000)
	switch {
	case s.SetClock != nil:
		s.SetClock(s, time.UnixMilli(s.Now))
	case second != 0:
		s.Skip("the clock of this store cannot be set")
	}
}

// Advance moves the clock on.
func (s *Fixture) Advance(d time.Duration) {
	s.Helper()
	s.At(float64(s.Now-Epoch+d.Milliseconds()) / 1000)
}

// Worker returns a worker that the test drives: it looks often and logs nothing.
func (s *Fixture) Worker(q *queue.Queue, handlers []job.Handler, opts ...queue.WorkerOption) *queue.Worker {
	s.Helper()
	reg, err := job.NewRegistry(handlers...)
	require.NoError(s, err)
	own := []queue.WorkerOption{queue.Poll(10 * time.Millisecond), queue.Runner(&job.Runner{Logger: Quiet})}
	return queue.NewWorker(q, reg, append(own, opts...)...)
}

// supported skips the test for what the store cannot do, and fails it for any other error.
func (s *Fixture) supported(err error) {
	s.Helper()
	if errors.Is(err, queue.ErrUnsupported) {
		s.Skip(err)
	}
	require.NoError(s, err)
}

// Push pushes an envelope.
func (s *Fixture) Push(e job.Envelope, opts ...queue.PushOption) string {
	s.Helper()
	id, err := s.Q.PushEnvelope(s.Context(), e, opts...)
	s.supported(err)
	return id
}

// PushJob pushes a Go job.
func (s *Fixture) PushJob(j queue.Job, opts ...queue.PushOption) string {
	s.Helper()
	id, err := s.Q.Push(s.Context(), j, opts...)
	s.supported(err)
	return id
}

// Insert stores a message as another language does, without package queue.
func (s *Fixture) Insert(payload string) {
	s.Helper()
	if s.Harness.Insert == nil {
		s.Skip("this store takes no messages from others")
	}
	s.Harness.Insert(s, "default", []byte(payload))
}

// Counts counts the jobs of a queue.
func (s *Fixture) Counts(name string) queue.Counts {
	s.Helper()
	c, err := s.Q.Counts(s.Context(), name)
	s.supported(err)
	return c
}

// MustBeEmpty checks that there is no live job.
func (s *Fixture) MustBeEmpty() {
	s.Helper()
	assert.Equal(s, queue.Counts{}, s.Counts(""))
}

// DeadLetters returns the dead letters.
func (s *Fixture) DeadLetters() (letters []queue.FailedJob) {
	s.Helper()
	for f, err := range s.Q.Failed(s.Context(), queue.Filter{}) {
		s.supported(err)
		letters = append(letters, f)
	}
	return letters
}

// List returns the live jobs.
func (s *Fixture) List() (jobs []queue.JobInfo) {
	s.Helper()
	for info, err := range s.Q.List(s.Context(), "") {
		s.supported(err)
		jobs = append(jobs, info)
	}
	return jobs
}

// Inspect returns what is known of a job.
func (s *Fixture) Inspect(id string) queue.Record {
	s.Helper()
	r, err := s.Q.Inspect(s.Context(), id)
	s.supported(err)
	return r
}

// Dead makes dead letters of jobs of these names, in this order, and returns their ids.
func (s *Fixture) Dead(names ...string) (ids []string) {
	s.Helper()
	for _, name := range names {
		s.Push(Envelope("nobody", name))
	}
	s.Drain(s.Worker(s.Q, nil, queue.Concurrency(1)))
	for _, f := range s.DeadLetters() {
		ids = append(ids, f.ID)
	}
	require.Len(s, ids, len(names))
	return ids
}

// Pending returns the names of the live jobs, in the order of their ids.
func (s *Fixture) Pending() (names []string) {
	s.Helper()
	for _, info := range s.List() {
		names = append(names, NameOf(info.Envelope))
	}
	return names
}

// Drain lets a worker work until the queue is empty, and returns how many jobs it took.
func (s *Fixture) Drain(w *queue.Worker) int {
	s.Helper()
	n, err := w.WorkUntilEmpty(s.Context(), 0)
	require.NoError(s, err)
	return n
}

// Start runs f and returns a function that waits for its error.
func (s *Fixture) Start(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error {
		s.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(Limit):
			require.Fail(s, "it did not return")
			return nil
		}
	}
}

// Poll waits until a condition holds that only looking can tell.
func (s *Fixture) Poll(what string, ok func() bool) {
	s.Helper()
	require.Eventually(s, ok, Limit, 2*time.Millisecond, what)
}

// Receive waits for a value.
func Receive[T any](s *Fixture, c <-chan T, what string) (v T) {
	s.Helper()
	select {
	case v = <-c:
		return v
	case <-time.After(Limit):
		require.Fail(s, "nothing came: "+what)
		return v
	}
}
