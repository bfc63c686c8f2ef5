package worker

import (
	"runtime"
	"time"
)

// longTask is how long a task runs before the worker assumes that it keeps a processor busy.
const longTask = 10 * time.Millisecond

// Processors says how many processors a worker uses, as values of GOMAXPROCS. While all tasks are
// short the worker uses Share: threads that wake each other for the same work are most of what a
// short call costs. A task that has run for 10 ms may spin, so each such task adds one, up to Most,
// and holds up neither timers nor other calls; one or two seconds after its end the worker gives
// that one back. The zero Processors does not change GOMAXPROCS. Once the program sets GOMAXPROCS
// itself, the worker no longer changes it.
type Processors struct{ Share, Most int }

func (p Processors) vary() bool { return p.Most > p.Share }

// shareProcessors sets GOMAXPROCS by the number of long tasks, to a smaller value only if
// mayGoDown. Only the watch calls it.
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
