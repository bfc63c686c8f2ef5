package tasktype

import "time"

// A Worker names a worker process.
type Worker struct {
	Index int `json:"index"`
	PID   int `json:"pid"`
}

// A WorkerStatus says what one worker does and has done. While no call is on its way,
// Accepted = Success + Fail + Lost + Running.
//
// Status normally returns one for each index, whose counts are the index's totals since Start.
// While a worker is being replaced, Status lists the old one too, with Accepting false and its own
// counts.
type WorkerStatus struct {
	Index       int       `json:"index"`
	Accepting   bool      `json:"accepting"` // clients may choose it
	Running     int       `json:"running"`   // tasks that hold a slot now
	Success     uint64    `json:"success"`   // tasks that returned without an error
	Fail        uint64    `json:"fail"`      // tasks that failed, and packages that expired
	PID         int       `json:"pid"`       // 0: the index waits for its restart
	StartUpTime time.Time `json:"startUpTime"`

	Accepted   uint64 `json:"accepted"`   // packages that the worker took on, expired ones included
	Lost       uint64 `json:"lost"`       // tasks that ended with their worker process
	Expired    uint64 `json:"expired"`    // packages whose deadline passed before their run; also in Fail
	Busy       uint64 `json:"busy"`       // packages that it refused because no slot was free; in no other count
	Restarts   uint64 `json:"restarts"`   // processes that replaced a failed one; planned replacements do not count
	Generation uint64 `json:"generation"` // the number of its process; the pool counts its processes from 1
	Degraded   bool   `json:"degraded"`   // its restarts are delayed because they keep failing
}
