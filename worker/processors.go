package worker

import (
	"runtime"
	"time"
)

// longTask is how long a task may run before it counts as one that keeps a processor busy.
const longTask = 10 * time.Millisecond

// Processors says how much of the machine a worker takes, as values of GOMAXPROCS. It has its
// Share while all tasks are short: threads that wake each other for the same work are most of what a
// short call costs. Each task that has run for 10 ms may be one that spins, and gives the
// worker one more, up to Most, so that it holds up neither timers nor other calls; that is given
// back within a second or two of its end. The zero Processors leaves GOMAXPROCS alone, and so
// does any, once the program has set it.
type Processors struct{ Share, Most int }

func (p Processors) vary() bool { return p.Most > p.Share }

// shareProcessors follows the number of long tasks; down only when it may go down. The watch's.
func (s *Server) shareProcessors(long int, mayGoDown bool) {
	want := min(s.cfg.Processors.Share+long, s.cfg.Processors.Most)
	if want == s.processors || want < s.processors && !mayGoDown {
		return
	}
	if runtime.GOMAXPROCS(0) == s.processors {
		runtime.GOMAXPROCS(want)
		s.processors = want
	}
}
