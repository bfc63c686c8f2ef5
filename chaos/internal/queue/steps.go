package queue

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/internal/sqltest"
	"github.com/taskd-go/task/queue/sqlqueue"
)

// A chaosStep is a place in a job's life.
type chaosStep struct {
	name  string
	write write
	stage stage
	order chaosOrder // what the jobs do that get there
	tries int
	again []string // the victims whose death there lets the job run again
}

// A write is a kind of statement that a worker sends.
type write int

const (
	noWrite  write = iota // the job itself tells that it is there
	claiming              // takes jobs
	completing
	requeueing
	burying
	renewing
)

// A stage is where a statement is on its way.
type stage int

const (
	unsent      stage = iota
	uncommitted       // sent, and not committed; unsent when it is a transaction of its own
	committed
)

// The victims.
const (
	victimWorker = "worker"
	victimChild  = "child"
	victimServer = "server"
)

// A chaosOrder is the payload of a job.
type chaosOrder struct {
	Fails int           // how many attempts fail
	For   time.Duration // how long the first run takes …
	Later time.Duration // … and each one after it: so long that its row is seen while it runs; 0: as long
}

const (
	quickRun = 2 * time.Millisecond
	seenRun  = 5 * lookPause
	longRun  = 2 * chaosRenew  // long enough for a renewal …
	heldRun  = 10 * chaosRenew // … and to be killed in it, on a busy machine too
	always   = 1000            // more attempts than a job has
)

// chaosSteps is a job's life from its push to its end.
var chaosSteps = []chaosStep{
	{"pushed, not claimed", claiming, unsent, chaosOrder{0, quickRun, seenRun}, 5, nil},
	{"claimed", claiming, committed, chaosOrder{0, quickRun, seenRun}, 5, nil},
	{"running", noWrite, unsent, chaosOrder{0, quickRun, seenRun}, 5, []string{victimWorker, victimChild}},
	{"finished, not stored", completing, unsent, chaosOrder{0, quickRun, seenRun}, 5, []string{victimWorker}},
	{"completion stored", completing, committed, chaosOrder{0, quickRun, seenRun}, 5, nil},
	{"requeueing", requeueing, uncommitted, chaosOrder{1, quickRun, seenRun}, 5, []string{victimWorker}},
	{"requeued", requeueing, committed, chaosOrder{1, quickRun, seenRun}, 5, nil},
	{"moving to the dead", burying, unsent, chaosOrder{always, quickRun, seenRun}, 1, nil},
	{"moved to the dead", burying, committed, chaosOrder{always, quickRun, seenRun}, 1, nil},
	{"renewing its lease", renewing, uncommitted, chaosOrder{0, heldRun, seenRun}, 5, []string{victimWorker, victimChild}},
}

func stepNamed(name string) (chaosStep, bool) {
	for _, s := range chaosSteps {
		if s.name == name {
			return s, true
		}
	}
	return chaosStep{}, false
}

// A pauser holds the first statement of a worker that gets to a step. Until it is let go it takes one job only.
type pauser struct {
	step         chaosStep
	jobs, failed string                   // tables
	meet         func() (answerLost bool) // returns when the worker may go on
	took         atomic.Bool              // a job
	met          atomic.Bool
	free         chan struct{} // closed when the worker may go on
}

func newPauser(step chaosStep, t sqlqueue.Tables, meet func() (answerLost bool)) *pauser {
	return &pauser{step: step, jobs: t.Prefix + "jobs", failed: t.Prefix + "failed_jobs", meet: meet, free: make(chan struct{})}
}

var errAnswerLost = errors.New("the database was killed before its answer arrived")

func (p *pauser) hooks() sqltest.Hooks { return sqltest.Hooks{Before: p.before, After: p.after} }

// kind says what a statement writes. A transaction that buries deletes the job first.
func (p *pauser) kind(statement string) write {
	switch {
	case strings.Contains(statement, "INSERT INTO "+p.failed+" "):
		return burying
	case strings.Contains(statement, "DELETE FROM "+p.jobs+" "):
		return completing
	case strings.Contains(statement, "attempts = attempts + 1"):
		return claiming
	case strings.Contains(statement, "reserved_token = NULL"):
		return requeueing
	case strings.Contains(statement, "SET lease_until"):
		return renewing
	}
	return noWrite
}

func (p *pauser) before(_ context.Context, c *sqltest.Call) error {
	if p.took.Load() && p.kind(c.Statement) == claiming {
		<-p.free
	}
	if p.kind(c.Statement) != p.step.write || p.step.write == noWrite {
		return nil
	}
	if p.step.stage == unsent || p.step.stage == uncommitted && c.Tx == nil {
		return p.pause()
	}
	return nil
}

func (p *pauser) after(_ context.Context, c *sqltest.Call) error {
	if c.Rows > 0 && p.kind(c.Statement) == claiming {
		p.took.Store(true)
	}
	reached := p.step.write != noWrite && p.kind(c.Statement) == p.step.write && c.Rows > 0
	switch {
	case p.step.stage == uncommitted && reached && c.Tx != nil:
		return p.pause()
	case p.step.stage != committed:
	case reached && c.Tx == nil, c.Statement == "COMMIT" && c.Tx.Note == p:
		return p.pause()
	case reached:
		c.Tx.Note = p
	}
	return nil
}

func (p *pauser) pause() error {
	if !p.met.CompareAndSwap(false, true) {
		return nil
	}
	defer close(p.free)
	if p.meet() {
		return errAnswerLost
	}
	return nil
}
