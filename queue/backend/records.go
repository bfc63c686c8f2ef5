package backend

import (
	"time"

	"github.com/taskd-go/task/job"
)

// MaxCount is the highest number in Counts. It means that there are that many jobs of a state or
// more: a store stops counting there, so that Counts of a deep queue is cheap.
const MaxCount = 10_000

// Counts are the jobs of a queue by state, each up to MaxCount. Dead letters do not count.
type Counts struct {
	Ready    int64 `json:"ready"`    // due
	Delayed  int64 `json:"delayed"`  // not due yet
	Reserved int64 `json:"reserved"` // a worker has it, or died with it and the lease has not been ended yet
}

// Size returns the sum of all states.
func (c Counts) Size() int64 { return c.Ready + c.Delayed + c.Reserved }

// AtLeast reports whether a number is MaxCount, so that there may be more jobs than Counts says.
func (c Counts) AtLeast() bool { return max(c.Ready, c.Delayed, c.Reserved) >= MaxCount }

// A JobInfo describes a live job.
type JobInfo struct {
	ID          string         `json:"id"`
	Queue       string         `json:"queue"`
	State       string         `json:"state"` // ready, delayed or reserved
	JobID       string         `json:"jobId"`
	Type        string         `json:"type"`
	Priority    int            `json:"priority"`
	Attempts    int            `json:"attempts"`
	MaxAttempts int            `json:"maxAttempts"`
	Crashes     int            `json:"crashes"`
	AvailableAt time.Time      `json:"availableAt"`
	CreatedAt   time.Time      `json:"createdAt"`
	ReservedBy  string         `json:"reservedBy,omitempty"` // host, pid and a nonce of the worker
	ReservedAt  time.Time      `json:"reservedAt,omitzero"`
	LeaseUntil  time.Time      `json:"leaseUntil,omitzero"`
	UniqueKey   string         `json:"uniqueKey,omitempty"`
	Backoff     *time.Duration `json:"backoff,omitempty"` // nanoseconds; nil: the worker's policy
	Timeout     *time.Duration `json:"timeout,omitempty"` // nanoseconds; nil: the worker's, negative: none

	Failures []job.AttemptError `json:"failures,omitempty"` // of earlier attempts
	Replays  int                `json:"replays,omitempty"`
	Envelope job.Envelope       `json:"envelope,omitzero"`
	Raw      string             `json:"raw,omitempty"`    // the payload, if it is no envelope
	Broken   string             `json:"broken,omitempty"` // why it is none
}

// A Record is what Inspect returns: the live job, if there is one, and its dead letters, the newest
// last.
type Record struct {
	Job  *JobInfo    `json:"job,omitempty"`
	Dead []FailedJob `json:"dead,omitempty"`
}

// A FailedJob is a dead letter.
type FailedJob struct {
	ID         string             `json:"id"`    // of this letter, for Retry
	Row        string             `json:"row"`   // JobInfo.ID of the job, before it died and after Retry
	JobID      string             `json:"jobId"` // "db_" and Row if the payload has none
	Type       string             `json:"type"`
	Queue      string             `json:"queue"`
	ErrorClass string             `json:"errorClass"` // see job.ErrorClass
	Error      string             `json:"error"`
	Reason     job.Reason         `json:"reason"`
	History    []job.AttemptError `json:"history,omitempty"` // the known failed attempts, including the last
	FailedBy   string             `json:"failedBy"`          // the worker that made it a dead letter
	Attempts   int                `json:"attempts"`
	Crashes    int                `json:"crashes"`
	Replays    int                `json:"replays"`
	CreatedAt  time.Time          `json:"createdAt"`
	FailedAt   time.Time          `json:"failedAt"`
	Payload    string             `json:"payload"` // the envelope without History, or the payload that is no envelope
}

// Exception returns the error as "Class: message".
func (f FailedJob) Exception() string { return f.ErrorClass + ": " + f.Error }

// A Filter chooses dead letters.
type Filter = job.Filter
