package task

import (
	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/tasktype"
)

// A Status is the code of a failed call, an int and an error itself:
// errors.Is(err, task.ErrProcessBusy). Its Message method returns the code's words, such as "task
// process busy"; Error returns the words and the number. A task's own result is never a Status.
type Status = protocol.Status

// The statuses, with the numbers that they have in PROTOCOL.md.
const (
	ErrProcessBusy      Status = protocol.StatusBusy             // -2: no free slot, or the pool takes no calls
	ErrProtocol         Status = protocol.StatusProtocol         // -3: the frame was malformed
	ErrIllegalPackage   Status = protocol.StatusIllegal          // -4: the package, its task or its arguments are invalid
	ErrTask             Status = protocol.StatusTaskError        // -5: the task failed, or a value cannot be encoded
	ErrPackageExpire    Status = protocol.StatusExpired          // -6: the deadline passed before the task started
	ErrSockTimeout      Status = protocol.StatusSockTimeout      // -7: a connect, send or receive failed or timed out
	ErrPackageTooLarge  Status = protocol.StatusPackageTooLarge  // -8: the request is over MaxPackageSize
	ErrResponseTooLarge Status = protocol.StatusResponseTooLarge // -9: the task ran; its result is over MaxPackageSize
)

// A WorkerStatus says what one worker does and has done. While no call is on its way, Accepted =
// Success + Fail + Lost + Running.
//
// Status normally returns one for each index, whose counts are the index's totals since Start.
// While a worker is being replaced, Status lists the old one too, with Accepting false and its own
// counts.
//
//	type WorkerStatus struct {
//		Index       int
//		Accepting   bool   // clients may choose it
//		Running     int    // tasks that hold a slot now
//		Success     uint64 // tasks that returned without an error
//		Fail        uint64 // tasks that failed, and packages that expired
//		PID         int    // 0: the index waits for its restart
//		StartUpTime time.Time
//
//		Accepted   uint64 // packages that the worker took on, expired ones included
//		Lost       uint64 // tasks that ended with their worker process
//		Expired    uint64 // packages whose deadline passed before their run; also in Fail
//		Busy       uint64 // packages that it refused because no slot was free; in no other count
//		Restarts   uint64 // processes that replaced a failed one; planned replacements do not count
//		Generation uint64 // the number of its process; the pool counts its processes from 1
//		Degraded   bool   // its restarts are delayed because they keep failing
//	}
type WorkerStatus = tasktype.WorkerStatus
