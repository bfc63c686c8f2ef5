// Package memstat reports memory limits and use of processes, as the system accounts them.
package memstat

// OOMScore raises the oom_score_adj of this process by delta, so that the kernel kills it before
// its parent. It does nothing on other systems than Linux.
func OOMScore(delta int) { raiseOOMScore(delta) }

// OOMKills returns how many processes of this process's cgroup the kernel has killed for lack of
// memory; ok is false if that is unknown.
func OOMKills() (n uint64, ok bool) { return oomKills() }

// Limit returns the memory limit of the cgroup in bytes, the smallest on the path to the root; 0:
// none or unknown.
func Limit() int64 { return memoryLimit() }

// Resident returns the resident size of the process in bytes; 0: unknown.
func Resident(pid int) int64 { return resident(pid) }
