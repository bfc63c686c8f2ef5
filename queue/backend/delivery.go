package backend

import (
	"encoding/json"
	"time"

	"github.com/taskd-go/task/job"
)

// A Receipt stands for one delivery. Only the store looks at its value; package queue passes it on.
type Receipt any

// A Delivery is one reservation of a message.
type Delivery struct {
	ID        string // Pushed.ID of the message
	Queue     string
	UniqueKey string // "": none
	Payload   []byte // as its producer stored it; see Envelope
	Priority  int

	Attempts    int            // including this one
	MaxAttempts int            // 0: the envelope's
	Crashes     int            // how many workers died with the job
	Backoff     *time.Duration // the wait after each failure; nil: the worker's policy
	Timeout     time.Duration  // of this run; 0: the worker's, negative: none

	// Times by the store's clock; zero if the store does not keep them. A delivery of
	// Sweeper.Lapsed must have LeaseUntil and ReservedBy.
	CreatedAt   time.Time
	AvailableAt time.Time // when it was due
	ReservedAt  time.Time
	LeaseUntil  time.Time
	ReservedBy  string // the name of the worker

	// Fault says what the store cannot read of the message, such as a number that another program
	// wrote as a text; nil: nothing. The job does not run: it becomes a dead letter.
	Fault error

	Receipt Receipt
}

// Envelope returns Fault, or decodes the payload. Attempts and MaxAttempts of the delivery override its attempt and
// maxAttempts. If the payload has no id, the envelope gets the FallbackID.
func (d *Delivery) Envelope() (job.Envelope, error) {
	if d.Fault != nil {
		return job.Envelope{}, d.Fault
	}
	e, err := job.Decode(d.Payload)
	if err != nil {
		return e, err
	}
	if !hasID(d.Payload) {
		e.JobID = d.FallbackID()
	}
	e.Attempt = max(d.Attempts, 1)
	if d.MaxAttempts != 0 {
		e.MaxAttempts = d.MaxAttempts
	}
	return e, nil
}

// FallbackID returns the id of a job whose payload has none: "db_" and ID.
func (d *Delivery) FallbackID() string { return "db_" + d.ID }

// hasID reports whether the payload has an id. Without one Decode makes an id of the content, but
// two messages with the same content are two jobs.
func hasID(payload []byte) bool {
	const ours = `{"v":1,"jobId":"job_`
	if len(payload) > len(ours) && string(payload[:len(ours)]) == ours {
		return true
	}
	var members map[string]json.RawMessage
	var id string
	return json.Unmarshal(payload, &members) == nil && json.Unmarshal(members["jobId"], &id) == nil && id != ""
}

// A Completion says what becomes of a delivery.
type Completion struct {
	Delivery *Delivery

	// Outcome is one of these. Succeeded, Discarded or Skipped: the job is done, so remove the
	// message. Requeued or Deferred: deliver it again when it is due. Dead: make it a dead letter.
	Outcome job.Outcome

	Envelope job.Envelope  // the job from now on; zero: the payload stays as it is
	Delay    time.Duration // until it is due again, by the store's clock
	DueAt    time.Time     // when it is due again, in place of Delay; zero: Delay counts

	Uncount bool // the attempt of this delivery does not count
	Crashed bool // count a crash: a worker died with the job
	Lapsed  bool // the delivery is of Sweeper.Lapsed: return ErrLost if its lease was renewed since

	Letter *job.DeadLetter // with Outcome Dead: the letter, without an ID
}

// Payload returns the payload from now on: the encoded Envelope, or the delivered payload if
// Envelope is zero.
func (c *Completion) Payload() []byte {
	if c.Envelope.JobType == "" {
		return c.Delivery.Payload
	}
	encoded, err := c.Envelope.Encode()
	if err != nil { // never: the envelope was decoded from JSON
		return c.Delivery.Payload
	}
	return encoded
}
