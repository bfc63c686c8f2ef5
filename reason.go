package task

// A Reason says why something happened to a worker. The list below is closed;
// the same words are in the log, in the errors of lost calls and in
// docs/operations.md.
type Reason string

// The reasons.
const (
	ReasonStarted Reason = "started" // the pool's own start
	ReasonStable  Reason = "stable"  // an index that was degraded serves again

	ReasonCrashed         Reason = "crashed"          // the process ended by itself, unasked, or with an error in its drain
	ReasonKilled          Reason = "killed"           // a signal that was not ours ended it
	ReasonOutOfMemory     Reason = "out_of_memory"    // the kernel killed it for memory, or gave it no more
	ReasonBootFailed      Reason = "boot_failed"      // it ended or gave up before it was ready
	ReasonBootTimeout     Reason = "boot_timeout"     // it was not ready within StartTimeout and was killed
	ReasonSpawnFailed     Reason = "spawn_failed"     // fork or exec failed
	ReasonUnresponsive    Reason = "unresponsive"     // it did not confirm an order in time and was killed
	ReasonReapedElsewhere Reason = "reaped_elsewhere" // the host reaped it, so that nothing is known of its end

	ReasonDrained        Reason = "drained"         // somebody sent it SIGTERM or SIGINT
	ReasonDrainTimeout   Reason = "drain_timeout"   // its tasks did not end within DrainTimeout
	ReasonRecycledTasks  Reason = "recycled_tasks"  // it had run MaxTasksPerWorker tasks
	ReasonRecycledAge    Reason = "recycled_age"    // it was older than MaxWorkerAge
	ReasonRecycledMemory Reason = "recycled_memory" // it was larger than MaxWorkerMemory
	ReasonReloaded       Reason = "reloaded"        // Reload replaced it
	ReasonReloadAborted  Reason = "reload_aborted"  // Reload gave up
	ReasonSoftLimit      Reason = "soft_limit"      // a task's soft limit passed
	ReasonHardLimit      Reason = "hard_limit"      // a task's time limit passed
	ReasonSuspect        Reason = "suspect"         // it failed everything at once
	ReasonSocketLost     Reason = "socket_lost"     // somebody removed its socket file
	ReasonDrift          Reason = "drift"           // its counters and its records disagree
	ReasonOutputBlocked  Reason = "output_blocked"  // the parent's own output takes no more
	ReasonStartFailed    Reason = "start_failed"    // another worker of the pool did not start
	ReasonShutdown       Reason = "shutdown"        // the end of the pool
)
