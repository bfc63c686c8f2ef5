package queue

import (
	"slices"
	"time"
)

// A step is a place in a job's life.
type step struct {
	name  string
	write write
	stage stage
	order order // of the job that gets there
	tries int
	again []string // the targets whose death there makes the job run again, and counts as a crash
	crash []string // the targets whose death there only counts as a crash
}

// A write is a kind of statement that a worker sends.
type write int

const (
	noWrite  write = iota // the job itself reports that it is there
	claiming              // takes jobs
	completing
	requeueing
	givingBack // requeues a job that did not run
	burying
	renewing
)

// A stage is how far a statement has got.
type stage int

const (
	unsent      stage = iota
	uncommitted       // sent, and not committed; a statement that is its own transaction is unsent
	committed
)

// The targets of kills.
const (
	targetWorker = "worker"
	targetChild  = "child"
	targetServer = "server"
)

// An order is the payload of a job.
type order struct {
	Fails int           // how many attempts fail
	For   time.Duration // how long the first run takes
	Later time.Duration // how long later runs take; 0: as long as the first
}

const (
	shortRun = 2 * time.Millisecond
	seenRun  = 5 * checkEvery  // so long that checkRows sees the row while the job runs
	longRun  = 2 * renewEvery  // long enough for a renewal …
	heldRun  = 10 * renewEvery // … and for a kill after it, also on a busy machine
	always   = 1000            // more attempts than any job has
)

// steps is a job's life from its push to its end.
var steps = []step{
	{"pushed, not claimed", claiming, unsent, order{0, shortRun, seenRun}, 5, nil, nil},
	{"claimed", claiming, committed, order{0, shortRun, seenRun}, 5, nil, []string{targetWorker}},
	{"running", noWrite, unsent, order{0, shortRun, seenRun}, 5, []string{targetWorker, targetChild}, nil},
	{"finished, not stored", completing, unsent, order{0, shortRun, seenRun}, 5, []string{targetWorker}, nil},
	{"completion stored", completing, committed, order{0, shortRun, seenRun}, 5, nil, nil},
	{"requeueing", requeueing, uncommitted, order{1, shortRun, seenRun}, 5, []string{targetWorker}, nil},
	{"requeued", requeueing, committed, order{1, shortRun, seenRun}, 5, nil, nil},
	{"moving to the dead", burying, unsent, order{always, shortRun, seenRun}, 1, nil, []string{targetWorker}},
	{"moved to the dead", burying, committed, order{always, shortRun, seenRun}, 1, nil, nil},
	{
		"renewing its lease", renewing, uncommitted, order{0, heldRun, seenRun}, 5,
		[]string{targetWorker, targetChild}, nil,
	},
}

// expects returns how many jobs run again and how many crashes count after the death of target.
func (s step) expects(target string) (again, crashes int) {
	switch {
	case slices.Contains(s.again, target):
		return 1, 1
	case slices.Contains(s.crash, target):
		return 0, 1
	}
	return 0, 0
}

func stepNamed(name string) (step, bool) {
	for _, s := range steps {
		if s.name == name {
			return s, true
		}
	}
	return step{}, false
}
