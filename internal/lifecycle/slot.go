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
	due time.Time       // when the next spawn is due; a planned one may be later; zero: none

	request tasktype.Reason // a replacement while serving goes on
	asked   uint64
	planned bool // next counts against MaxReplacing

	failures  failures
	degraded  bool
	restarts  uint64
	recoverAt time.Time
	rebindAt  time.Time // when to bind the socket again; zero: the file is in place
	refused   refusal
}

// refusal says how far the refusal of an index's backlog is, at the pool's end.
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
	accepting              // was ordered to accept
	stopping               // was ordered to drain, or drains by itself, and may still accept
	draining               // has stopped accepting
)

// A process is one worker process, from its Spawn to its exit.
type process struct {
	Key
	pid       int // 0: not spawned yet
	build     int
	state     state
	why       tasktype.Reason // why it was started
	retire    tasktype.Reason // why it must go; "": it serves on
	wants     tasktype.Reason // why it asks to be recycled, once; "": it does not
	killed    tasktype.Reason // why the pool killed it; "": it did not
	words     string          // its last message, or one about it
	told      bool            // it was ordered to accept
	confirmed bool            // it confirmed that it accepts
	current   bool            // clients choose it
	deadline  time.Time
	within    time.Duration // of its drain
	drainBy   time.Time
}

func (p *process) worker() tasktype.Worker { return tasktype.Worker{Index: p.Index, PID: p.pid} }

// mayAccept reports whether p may still accept connections.
func (p *process) mayAccept() bool { return p.told && p.state != draining }
