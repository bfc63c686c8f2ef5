package sys

// OOMScore raises this process's oom_score_adj by delta, so that the kernel takes it before its
// parent (Linux; elsewhere nothing happens).
func OOMScore(delta int) { raiseOOMScore(delta) }

// OOMKills returns how many processes of this process's cgroup the kernel killed for want of memory
// so far; ok is false where that is unknown.
func OOMKills() (n uint64, ok bool) { return oomKills() }

// MemoryLimit returns the cgroup's memory limit in bytes, the smallest on the way to the root; 0:
// none or unknown.
func MemoryLimit() int64 { return memoryLimit() }

// Resident returns a process's resident size in bytes; 0: unknown.
func Resident(pid int) int64 { return resident(pid) }
