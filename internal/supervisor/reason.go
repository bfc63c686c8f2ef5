package supervisor

// A Reason says why something happened: every event, every log line and every end record in the
// shared table carries exactly one of this closed list.
type Reason uint32

const (
	// Unknown is the zero Reason; no event carries it.
	Unknown Reason = iota

	Started // the pool's own start
	Stable  // an index that was degraded serves again

	Crashed         // the process ended by itself, unasked, or with an error in its drain
	Killed          // a signal that was not ours ended it
	OutOfMemory     // the kernel killed it for memory, or gave it no more
	BootFailed      // it ended or gave up before it was ready
	BootTimeout     // it was not ready within StartTimeout and was killed
	SpawnFailed     // fork or exec failed
	Unresponsive    // it did not confirm an order in time and was killed
	ReapedElsewhere // the host reaped it, so that nothing is known of its end

	Drained        // somebody sent it SIGTERM or SIGINT
	DrainTimeout   // its tasks did not end within DrainTimeout
	RecycledTasks  // MaxTasksPerWorker
	RecycledAge    // MaxWorkerAge
	RecycledMemory // MaxWorkerMemory
	Reloaded       // Reload
	ReloadAborted  // Reload gave up
	SoftLimit      // SoftTimeLimit of a task
	HardLimit      // TimeLimit of a task
	Suspect        // it failed everything at once
	SocketLost     // somebody removed its socket file
	Drift          // its counters and its records disagree
	OutputBlocked  // the parent's own output takes no more
	StartFailed    // another worker of the pool did not start
	Shutdown       // the end of the pool

	reasons
)

var reasonNames = [reasons]string{
	Unknown: "unknown", Started: "started", Stable: "stable",
	Crashed: "crashed", Killed: "killed", OutOfMemory: "out_of_memory", BootFailed: "boot_failed",
	BootTimeout: "boot_timeout", SpawnFailed: "spawn_failed", Unresponsive: "unresponsive", ReapedElsewhere: "reaped_elsewhere",
	Drained: "drained", DrainTimeout: "drain_timeout", RecycledTasks: "recycled_tasks", RecycledAge: "recycled_age",
	RecycledMemory: "recycled_memory", Reloaded: "reloaded", ReloadAborted: "reload_aborted", SoftLimit: "soft_limit",
	HardLimit: "hard_limit", Suspect: "suspect", SocketLost: "socket_lost", Drift: "drift",
	OutputBlocked: "output_blocked", StartFailed: "start_failed", Shutdown: "shutdown",
}

// String returns the reason's name in lower case with underscores.
func (r Reason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return reasonNames[r]
}
