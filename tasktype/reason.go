package tasktype

// A Reason says why something happened to a worker. The list is closed; the same words are in the
// log, in the errors of lost calls and in docs/operations.md.
type Reason string

// The reasons.
const (
	ReasonStarted Reason = "started" // the start of the pool
	ReasonStable  Reason = "stable"  // a degraded index serves again

	ReasonCrashed         Reason = "crashed"          // it ended by itself, or with an error in its drain
	ReasonKilled          Reason = "killed"           // a signal ended it that the pool did not send
	ReasonOutOfMemory     Reason = "out_of_memory"    // the kernel killed it for memory, or refused it memory
	ReasonBootFailed      Reason = "boot_failed"      // it ended or gave up before it was ready
	ReasonBootTimeout     Reason = "boot_timeout"     // it was not ready within StartTimeout and was killed
	ReasonSpawnFailed     Reason = "spawn_failed"     // fork or exec failed
	ReasonUnresponsive    Reason = "unresponsive"     // it did not confirm an order in time and was killed
	ReasonReapedElsewhere Reason = "reaped_elsewhere" // the host reaped it, so its exit status is unknown

	ReasonDrained        Reason = "drained"         // it received SIGTERM or SIGINT
	ReasonDrainTimeout   Reason = "drain_timeout"   // its tasks did not end within DrainTimeout
	ReasonRecycledTasks  Reason = "recycled_tasks"  // it ran MaxTasksPerWorker tasks
	ReasonRecycledAge    Reason = "recycled_age"    // it was older than MaxWorkerAge
	ReasonRecycledMemory Reason = "recycled_memory" // it was larger than MaxWorkerMemory
	ReasonReloaded       Reason = "reloaded"        // Reload replaced it
	ReasonReloadAborted  Reason = "reload_aborted"  // Reload gave up
	ReasonSoftLimit      Reason = "soft_limit"      // a task passed its soft limit
	ReasonHardLimit      Reason = "hard_limit"      // a task passed its time limit
	ReasonSuspect        Reason = "suspect"         // it failed ten times in a row by its own fault
	ReasonSocketLost     Reason = "socket_lost"     // its socket file was removed
	ReasonDrift          Reason = "drift"           // its counters and its records disagree
	ReasonOutputBlocked  Reason = "output_blocked"  // the parent's own output is blocked
	ReasonStartFailed    Reason = "start_failed"    // another worker of the pool did not start
	ReasonShutdown       Reason = "shutdown"        // the end of the pool
)

// reasons is in the order of the numbers that the shared table holds: a new Reason goes to the end.
var reasons = [...]Reason{
	ReasonStarted, ReasonStable,
	ReasonCrashed, ReasonKilled, ReasonOutOfMemory, ReasonBootFailed, ReasonBootTimeout, ReasonSpawnFailed,
	ReasonUnresponsive, ReasonReapedElsewhere,
	ReasonDrained, ReasonDrainTimeout, ReasonRecycledTasks, ReasonRecycledAge, ReasonRecycledMemory,
	ReasonReloaded, ReasonReloadAborted, ReasonSoftLimit, ReasonHardLimit, ReasonSuspect, ReasonSocketLost,
	ReasonDrift, ReasonOutputBlocked, ReasonStartFailed, ReasonShutdown,
}

// Reasons lists every Reason. Later versions add to the end of the list.
func Reasons() []Reason { return append([]Reason(nil), reasons[:]...) }
