package task

import "github.com/taskd-go/task/tasktype"

// A Reason says why something happened to a worker. The list is closed; the same words are in the
// log, in the errors of lost calls and in docs/operations.md.
type Reason = tasktype.Reason

// The reasons.
const (
	ReasonStarted Reason = tasktype.ReasonStarted // the start of the pool
	ReasonStable  Reason = tasktype.ReasonStable  // a degraded index serves again

	ReasonCrashed         Reason = tasktype.ReasonCrashed         // it ended by itself, or with an error in its drain
	ReasonKilled          Reason = tasktype.ReasonKilled          // a signal ended it that the pool did not send
	ReasonOutOfMemory     Reason = tasktype.ReasonOutOfMemory     // the kernel killed it for memory, or refused it memory
	ReasonBootFailed      Reason = tasktype.ReasonBootFailed      // it ended or gave up before it was ready
	ReasonBootTimeout     Reason = tasktype.ReasonBootTimeout     // it was not ready within StartTimeout and was killed
	ReasonSpawnFailed     Reason = tasktype.ReasonSpawnFailed     // fork or exec failed
	ReasonUnresponsive    Reason = tasktype.ReasonUnresponsive    // it did not confirm an order in time and was killed
	ReasonReapedElsewhere Reason = tasktype.ReasonReapedElsewhere // the host reaped it, so its exit status is unknown

	ReasonDrained        Reason = tasktype.ReasonDrained        // it received SIGTERM or SIGINT
	ReasonDrainTimeout   Reason = tasktype.ReasonDrainTimeout   // its tasks did not end within DrainTimeout
	ReasonRecycledTasks  Reason = tasktype.ReasonRecycledTasks  // it ran MaxTasksPerWorker tasks
	ReasonRecycledAge    Reason = tasktype.ReasonRecycledAge    // it was older than MaxWorkerAge
	ReasonRecycledMemory Reason = tasktype.ReasonRecycledMemory // it was larger than MaxWorkerMemory
	ReasonReloaded       Reason = tasktype.ReasonReloaded       // Reload replaced it
	ReasonReloadAborted  Reason = tasktype.ReasonReloadAborted  // Reload gave up
	ReasonSoftLimit      Reason = tasktype.ReasonSoftLimit      // a task passed its soft limit
	ReasonHardLimit      Reason = tasktype.ReasonHardLimit      // a task passed its time limit
	ReasonSuspect        Reason = tasktype.ReasonSuspect        // it failed ten times in a row by its own fault
	ReasonSocketLost     Reason = tasktype.ReasonSocketLost     // its socket file was removed
	ReasonDrift          Reason = tasktype.ReasonDrift          // its counters and its records disagree
	ReasonOutputBlocked  Reason = tasktype.ReasonOutputBlocked  // the parent's own output is blocked
	ReasonStartFailed    Reason = tasktype.ReasonStartFailed    // another worker of the pool did not start
	ReasonShutdown       Reason = tasktype.ReasonShutdown       // the end of the pool
)
