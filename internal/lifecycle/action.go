package lifecycle

import (
	"github.com/taskd-go/task/internal/control"
	"github.com/taskd-go/task/tasktype"
)

// A Key names one worker process of a pool.
type Key struct {
	Index      int
	Generation uint64 // the pool counts its spawns from 1
}

// An Input is what happened: one of the types below.
type Input interface{}

// The inputs of Step.
type (
	StartWanted     struct{}
	StartCancelled  struct{ Cause error }
	ReloadWanted    struct{ Build int } // build numbers grow; the first is 1
	ReloadCancelled struct {
		Build int
		Cause error
	}
	ShutdownWanted struct{}
	CutWanted      struct{} // the context of a Shutdown ended
	Tick           struct{} // the time that Wake returned has come

	Spawned struct {
		Key
		PID int
	}
	SpawnFailed struct {
		Key
		Err error
	}
	Received struct { // a worker sent a message
		Key
		control.Message
		Resident int64                // bytes of a worker that sends KindReady
		Running  tasktype.RunningTask // the task of a message about a task
	}
	ChannelClosed struct{ Key }
	Exited        struct {
		Key
		Exit
	}
	SocketGone struct{ Index int }
	Bound      struct { // the answer to Bind
		Index int
		Err   error
	}
	Refused struct{ Index int } // the answer to Refuse
)

// An Action is what the caller of Step must do: one of the types below.
type Action interface{}

// The actions that Step returns. The caller answers each Spawn with Spawned or SpawnFailed, and
// reports the end of each spawned process with one Exited.
type (
	Spawn struct {
		Key
		Build int
	}
	Send struct {
		Key
		control.Message
	}
	Kill       struct{ Key } // SIGKILL to its process group
	SetCurrent struct{ Key } // clients choose its row from now on
	Finish     struct {      // write the end record, free the row
		Key
		Reason       tasktype.Reason
		Signal, Code int
	}
	Show struct { // what Status shows of an index
		Index    int
		Degraded bool
		Restarts uint64
	}
	Emit        struct{ tasktype.Event }
	Bind        struct{ Index int } // a new socket under the index's path; answered by Bound
	CloseDoors  struct{}            // no more calls: close the table, unlink the socket files
	Refuse      struct{ Index int } // answer the index's backlog with -2: no process accepts there any more
	DropBuild   struct{ Build int } // no process will be spawned from it again
	ReplyStart  struct{ Err error }
	ReplyReload struct {
		Build int
		Err   error
	}
	Done struct{ Lost []Lost } // the last action: every process is gone
)
