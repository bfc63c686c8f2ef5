package worker

import (
	"errors"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

const (
	suspectAfter  = 10               // failures of the worker's own in a row
	suspectWithin = time.Millisecond // slower failures do not attract calls
)

// A worker that fails every call at once looks idle and attracts more calls. These failures count
// as the worker's own and not the task's: a connection that cannot be accepted, or whose peer
// cannot be identified; a decoder that panics; a task that failed within 1 ms because the process
// or the system ran out of descriptors or memory. A task that ends in any other way resets the
// count.

// countEnd counts the end of a call with the error err.
func (s *Server) countEnd(k *call, err error) {
	if err != nil && (!k.ready && isPanic(err) || ranOut(err)) {
		if sys.Now()-k.started < int64(suspectWithin) {
			s.ownFailure(err)
		}
		return
	}
	if s.fastFailures.Load() != 0 {
		s.fastFailures.Store(0)
	}
}

// ownFailure counts a failure of the worker itself.
func (s *Server) ownFailure(err error) {
	if s.fastFailures.Add(1)%suspectAfter != 0 {
		return
	}
	s.log.Error("the worker itself fails", "worker", s.cfg.Index, "failures", suspectAfter, "err", textOf(err))
	if s.cfg.OnSuspect != nil {
		s.cfg.OnSuspect(err)
	}
}

func isPanic(err error) bool { return panicIn(err) != nil }

// panicIn returns the panic that err is or wraps, or nil.
func panicIn(err error) (p *PanicError) {
	asked(func() bool { return errors.As(err, &p) })
	return p
}

func ranOut(err error) bool {
	return asked(func() bool {
		return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
	})
}

// asked returns the result of f, which calls methods of a task's error. If they panic, it returns
// false.
func asked(f func() bool) (answer bool) {
	defer func() {
		if recover() != nil {
			answer = false
		}
	}()
	return f()
}
