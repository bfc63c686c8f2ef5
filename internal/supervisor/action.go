package supervisor

import (
	"time"

	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/sharedstate"
)

// A key names one worker process for the pool's whole life.
type key struct {
	index      int
	generation uint64 // counts the spawns of the pool, from 1
}

// What can happen to the machine.
type (
	event interface{}

	startWanted     struct{}
	startCancelled  struct{ cause error }
	reloadWanted    struct{ build int } // build numbers grow; the first is 1
	reloadCancelled struct {
		build int
		cause error
	}
	shutdownWanted struct{}
	cutWanted      struct{} // somebody's patience with the shutdown ended
	tick           struct{} // the time that wake named has come

	spawned struct {
		key
		pid int
	}
	spawnFailed struct {
		key
		err error
	}
	received struct {
		key
		control.Message
		resident int64 // of a worker that says it is ready, in bytes
	}
	channelClosed struct{ key }
	exited        struct {
		key
		exit
	}
	socketGone struct{ index int }
	bound      struct {
		index int
		err   error
	}
	refused struct{ index int } // the answer to refuse
)

// What the machine wants done. Each spawn is answered by spawned or spawnFailed, and each process
// that was spawned by one exited.
type (
	action interface{}

	spawn struct {
		key
		build int
	}
	send struct {
		key
		control.Message
	}
	kill       struct{ key } // SIGKILL to its process group
	setCurrent struct{ key } // clients choose its row from now on
	finish     struct {      // write the end record, free the row
		key
		sharedstate.End
	}
	show struct { // what Status says of an index
		index    int
		degraded bool
		restarts uint64
	}
	emit        struct{ Event }
	bind        struct{ index int } // a new socket under the index's path; answered by bound
	closeDoors  struct{}            // no more calls: close the table, unlink the socket files
	refuse      struct{ index int } // answer what sits in the backlog with -2; nobody accepts there any more
	dropBuild   struct{ build int } // no process will be spawned from it again
	replyStart  struct{ err error }
	replyReload struct {
		build int
		err   error
	}
	done struct{ lost []Lost } // the last action: every process is gone
)

// Kinds of events.
const (
	EventStarted       = "started"        // a process was spawned; the reason says why
	EventReady         = "ready"          // it accepts
	EventDraining      = "draining"       // it was told, or decided, to finish its tasks and go
	EventExited        = "exited"         // it is gone
	EventSpawnFailed   = "spawn_failed"   // fork or exec failed, Text is the error
	EventDegraded      = "degraded"       // the index failed several times in a row
	EventRecovered     = "recovered"      // and serves again
	EventSoftLimit     = "soft_limit"     // a task's soft limit passed, Text is the dump of the worker's goroutines
	EventHardLimit     = "hard_limit"     // a task's hard limit passed
	EventSuspect       = "suspect"        // a worker failed everything at once and is set aside
	EventDrift         = "drift"          // Text: counters and records of a worker disagree
	EventSocketLost    = "socket_lost"    // a socket file was removed; it is bound anew
	EventReloaded      = "reloaded"       // a reload is complete
	EventReloadAborted = "reload_aborted" // Text says why
	EventOutputDropped = "output_dropped" // Text says how much of the workers' output
	EventShutdown      = "shutdown"       // the drain of the pool began
)

// An Event is one change of state.
type Event struct {
	Time       time.Time
	Kind       string
	Reason     Reason
	Index, PID int // Index -1: the pool as a whole
	Generation uint64
	Signal     int
	ExitCode   int
	Tasks      []sharedstate.InFlight // what was running when it died
	Stderr     string                 // its last lines
	Text       string
	Dropped    uint64 // events dropped before this one because OnEvent was slow
}
