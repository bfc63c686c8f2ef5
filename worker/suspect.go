package worker

import (
	"errors"
	"syscall"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

const (
	suspectAfter  = 10               // failures of the worker's own in a row
	suspectWithin = time.Millisecond // and as fast as this, or they do not attract calls
)

// A worker that fails everything at once looks idle, and draws ever more calls. These failures
// are its own and not the task's doing: a connection that cannot be accepted, or whose peer
// cannot be told; a decoder that panics; a task that failed, within 1 ms, because the process
// or the system ran out of descriptors or memory. A task that ends in any other way shows that
// the worker works.

// judge counts the end of a call whose error is err.
func (s *Server) judge(k *call, err error) {
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

// ownFailure counts one failure of the worker itself.
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

// asked returns the answer of f, which calls methods of a task's own error: they may panic, which
// answers nothing.
func asked(f func() bool) (answer bool) {
	defer func() {
		if recover() != nil {
			answer = false
		}
	}()
	return f()
}
