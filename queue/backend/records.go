package backend

import (
	"time"

	"github.com/taskd-go/task/job"
)

// MaxCount is how far Counts counts the jobs of one state: a number of MaxCount means that there
// are so many or more. It bounds what a look at a deep queue costs.
const MaxCount = 10_000

// Counts are the jobs of a queue by state, each up to MaxCount. Dead letters do not count.
type Counts struct {
	Ready    int64 `json:"ready"`    // due
	Delayed  int64 `json:"delayed"`  // not due yet
	Reserved int64 `json:"reserved"` // taken by a worker, or left by one that is gone
}

// Size returns the sum of all states.
func (c Counts) Size() int64 { return c.Ready + c.Delayed + c.Reserved }

// AtLeast reports whether a state reached MaxCount, so that there may be more jobs than Counts
// says.
func (c Counts) AtLeast() bool { return max(c.Ready, c.Delayed, c.Reserved) >= MaxCount }

// A JobInfo is a live job as its store has it.
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
	Raw      string             `json:"raw,omitempty"` // the payload when it is no envelope
	Broken   string             `json:"broken,omitempty"`
}

// A Record is what Inspect finds: the job while it lives, and the dead letters that it left, the
// newest last.
type Record struct {
	Job  *JobInfo    `json:"job,omitempty"`
	Dead []FailedJob `json:"dead,omitempty"`
}

// A FailedJob is a dead letter.
type FailedJob struct {
	ID         string             `json:"id"`    // of this letter: what Retry takes
	Row        string             `json:"row"`   // the id that the job had and has again after Retry
	JobID      string             `json:"jobId"` // "db_" and Row if the payload has none
	Type       string             `json:"type"`
	Queue      string             `json:"queue"`
	ErrorClass string             `json:"errorClass"` // see job.ErrorClass
	Error      string             `json:"error"`
	Reason     job.Reason         `json:"reason"`
	History    []job.AttemptError `json:"history,omitempty"` // the failed attempts, the last one included
	FailedBy   string             `json:"failedBy"`          // the worker that ran it last
	Attempts   int                `json:"attempts"`
	Crashes    int                `json:"crashes"`
	Replays    int                `json:"replays"`
	CreatedAt  time.Time          `json:"createdAt"`
	FailedAt   time.Time          `json:"failedAt"`
	Payload    string             `json:"payload"` // the envelope as the store had it
}

// Exception returns the error as "Class: message".
func (f FailedJob) Exception() string { return f.ErrorClass + ": " + f.Error }

// A Filter chooses dead letters.
type Filter = job.Filter
