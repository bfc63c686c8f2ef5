package worker

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/taskd-go/task/internal/sys"
)

const (
	auditEvery  = time.Second
	auditLooks  = 20 // reads in a row: one of them should miss the moment in which a task begins or ends
	listedTasks = 20 // tasks that an error names
)

// A callList holds the calls that have a slot.
type callList struct {
	first   *call
	n       int
	overdue int // calls past their hard limit
	long    int // calls that have run for longTask
}

func (l *callList) add(k *call) {
	k.next = l.first
	if l.first != nil {
		l.first.prev = k
	}
	l.first = k
	l.n++
}

func (l *callList) remove(k *call) {
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		l.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	}
	k.prev, k.next = nil, nil
	l.n--
	if k.hardPast {
		l.overdue--
	}
	if k.long {
		l.long--
	}
}

// each calls f for every call in the list.
func (l *callList) each(f func(*call)) {
	for k := l.first; k != nil; k = k.next {
		f(k)
	}
}

func (s *Server) add(k *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.add(k)
	s.watch.began = true
	if s.drain.cut != nil {
		k.ctx.end(s.drain.cut)
	}
	if s.watch.auditAt == 0 {
		s.watch.auditAt = k.started + int64(auditEvery)
		s.arm(s.watch.auditAt)
	}
	s.arm(k.due())
}

func (s *Server) remove(k *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.remove(k)
	if k.inline {
		k.c.stuck = false
	}
	s.taskEnded()
	s.noticeEmpty()
}

// endContexts ends, with cause, the contexts of the running calls that match.
func (s *Server) endContexts(cause error, match func(*call) bool) {
	s.mu.Lock()
	var ending []*call
	s.running.each(func(k *call) {
		if match(k) {
			ending = append(ending, k)
		}
	})
	s.mu.Unlock()
	for _, k := range ending {
		k.ctx.end(cause)
	}
}

// Cut ends the contexts of all running tasks, and of those that start later, with cause.
func (s *Server) Cut(cause error) {
	s.mu.Lock()
	if s.drain.cut == nil {
		s.drain.cut = cause
	}
	s.mu.Unlock()
	s.endContexts(cause, func(*call) bool { return true })
}

// callerGone ends the contexts of the calls with WithCancel on c, which is read no further. A worker
// that drains has closed its reading side itself; it waits for the end of the whole connection.
func (s *Server) callerGone(c *conn) {
	if !s.isDraining() {
		s.endCancelled(c)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := s.running.first; k != nil; k = k.next {
		if k.cancel && k.c == c {
			s.wg.Go(func() {
				if c.hungUp() {
					s.endCancelled(c)
				}
			})
			return
		}
	}
}

func (s *Server) endCancelled(c *conn) {
	s.endContexts(ErrCallerGone, func(k *call) bool { return k.cancel && k.c == c })
}

// audit compares the in-flight records with the row's running tasks. A task changes the two one
// after the other, and on a busy machine much time may pass in between. So audit reports only a
// difference that two audits in a row find in every read.
func (s *Server) audit() {
	var records, running int
	for range auditLooks {
		if records, running = s.inFlight(); records == running {
			s.drifted = false
			return
		}
		runtime.Gosched()
	}
	if !s.drifted {
		s.drifted = true
		return
	}
	s.log.Error(
		"the in-flight records and the counter disagree",
		"worker",
		s.cfg.Index,
		"records",
		records,
		"running",
		running,
	)
	if s.cfg.OnDrift != nil {
		s.cfg.OnDrift(records, running)
	}
}

// inFlight returns how many tasks have a record, or found no place for one, and how many the row
// counts.
func (s *Server) inFlight() (records, running int) {
	s.mu.Lock()
	unrecorded := 0
	s.running.each(func(k *call) {
		if k.record < 0 {
			unrecorded++
		}
	})
	s.mu.Unlock()
	return len(s.cfg.Row.Tasks()) + unrecorded, s.cfg.Row.Running()
}

// runningError names the tasks that still run. The caller holds Server.mu.
func (s *Server) runningError(why string) error {
	now := sys.Now()
	var calls []*call
	s.running.each(func(k *call) { calls = append(calls, k) })
	slices.SortFunc(calls, func(a, b *call) int { return int(a.started - b.started) })
	var words []string
	for _, k := range calls[:min(len(calls), listedTasks)] {
		age := time.Duration(now - k.started).Round(time.Millisecond)
		words = append(words, fmt.Sprintf("%d %s for %s", k.taskID, k.typ.name, age))
	}
	if more := len(calls) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("worker %d: %d tasks still run %s: %s", s.cfg.Index, len(calls), why, strings.Join(words, ", "))
}
