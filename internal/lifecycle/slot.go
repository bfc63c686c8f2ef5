package lifecycle

import (
	"time"

	"github.com/taskd-go/task/tasktype"
)

// A slot is one worker index.
type slot struct {
	index    int
	build    int // what a restart runs
	next     *process
	serving  *process
	retiring []*process

	why tasktype.Reason // for the next spawn
	due time.Time       // of the next spawn, or the earliest time of a planned one; zero: none is due

	wish    tasktype.Reason // a replacement while serving goes on
	asked   uint64
	planned bool // next counts against maxReplacing

	failures  failures
	degraded  bool
	restarts  uint64
	recoverAt time.Time
	rebindAt  time.Time // zero: the socket file is in place
	refused   refusal
}

// refusal is how far the backlog of an index has been answered at the pool's end.
type refusal uint8

const (
	notRefused refusal = iota
	refusing
	refusedAll
)

type state uint8

const (
	booting   state = iota // spawned or being spawned
	ready                  // waits for its predecessor to stop
	accepting              // was told to accept
	stopping               // was told to drain, or drains by itself, and may still accept
	draining               // accepts no more
)

// A process is one worker process, from the wish to spawn it to its exit.
type process struct {
	Key
	pid       int // 0: not spawned yet
	build     int
	state     state
	why       tasktype.Reason // it was started
	retire    tasktype.Reason // it is to go; "": it is not
	wants     tasktype.Reason // to be recycled, which it says once; "": it does not
	killed    tasktype.Reason // we killed it
	words     string          // its own last ones, or ours about it
	told      bool            // to accept
	confirmed bool            // that it accepts
	current   bool            // clients choose it
	deadline  time.Time
	within    time.Duration // of its drain
	drainBy   time.Time
}

func (p *process) worker() tasktype.Worker { return tasktype.Worker{Index: p.Index, PID: p.pid} }

// mayAccept says whether p may still take connections off its listener.
func (p *process) mayAccept() bool { return p.told && p.state != draining }
