package task

import (
	"time"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

// A Status is the code of a failed call, an error itself:
// errors.Is(err, task.ErrProcessBusy). A task's own result is never a Status.
// The numbers are those of PROTOCOL.md.
type Status int

const (
	ErrProcessBusy      Status = -2 // no worker had a free slot, or the pool takes no calls
	ErrProtocol         Status = -3 // the frame was malformed
	ErrIllegalPackage   Status = -4 // not a package, or a task that is unknown or not allowed
	ErrTask             Status = -5 // the task failed and nothing settled it
	ErrPackageExpire    Status = -6 // the deadline passed before the task started
	ErrSockTimeout      Status = -7 // connecting, sending or receiving failed or took too long
	ErrPackageTooLarge  Status = -8 // the request is over MaxPackageSize
	ErrResponseTooLarge Status = -9 // the task ran; its result is over MaxPackageSize
)

// Error returns the code and its words.
func (s Status) Error() string { return protocol.Status(s).Error() }

// Message returns the code's words alone, such as "task process busy".
func (s Status) Message() string { return protocol.Status(s).Message() }

// A WorkerStatus says what one worker is doing and has done. Whenever the pool
// is still, Accepted = Success + Fail + Lost + Running.
//
// Normally there is one per index, and its counts are the index's totals since
// Start. While a worker is being replaced, the one that goes is listed too,
// with Accepting false and the counts of its own.
type WorkerStatus struct {
	Index       int
	Accepting   bool   // clients may choose it
	Running     int    // tasks that hold a slot now
	Success     uint64 // tasks that returned without an error
	Fail        uint64 // tasks that failed, and packages that expired
	PID         int    // 0: the index waits for its restart
	StartUpTime time.Time

	Accepted   uint64 // packages that were taken on, expired ones included
	Lost       uint64 // tasks that ended with their worker process
	Expired    uint64 // packages whose deadline passed before their run; in Fail too
	Busy       uint64 // packages that this worker refused for want of a slot; in no other count, and not the calls that found no worker to send to
	Restarts   uint64 // processes that took over from one that failed; planned replacements do not count
	Generation uint64 // the number of its process, of one counter for the whole pool, from 1
	Degraded   bool   // its restarts are being delayed because they keep failing
}

func workerStatuses(rows []sharedstate.Status) []WorkerStatus {
	out := make([]WorkerStatus, len(rows))
	for i, r := range rows {
		out[i] = WorkerStatus(r)
	}
	return out
}
