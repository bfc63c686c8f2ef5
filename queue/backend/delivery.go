package backend

import (
	"encoding/json"
	"time"

	"github.com/taskd-go/task/job"
)

// A Receipt stands for one delivery. Its value belongs to the store.
type Receipt any

// A Delivery is one reservation of a message.
type Delivery struct {
	ID        string // the one that Push returned
	Queue     string
	UniqueKey string // "": none
	Payload   []byte // as its producer stored it; see Envelope
	Priority  int

	Attempts    int            // this one included
	MaxAttempts int            // 0: the envelope's
	Crashes     int            // how many workers died with the job
	Backoff     *time.Duration // the wait after each failure; nil: the worker's policy
	Timeout     time.Duration  // of this run; 0: the worker's, negative: none

	// Times by the store's clock, as far as the store knows them.
	CreatedAt   time.Time
	AvailableAt time.Time // when it was due
	ReservedAt  time.Time
	LeaseUntil  time.Time
	ReservedBy  string // the name of the worker

	Receipt Receipt
}

// Envelope decodes the payload. The fields of the delivery override its members. A payload without
// an id of its own gets the one of FallbackID.
func (d *Delivery) Envelope() (job.Envelope, error) {
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

// FallbackID returns the id of a job whose payload has none: "db_" and the ID of the delivery.
func (d *Delivery) FallbackID() string { return "db_" + d.ID }

// hasID reports whether the message has an id of its own. Decode would have made one up from its
// content, and two messages of one content are two jobs.
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

	// Outcome is one of these. Succeeded, Discarded or Skipped: the job is done and the message
	// goes. Requeued or Deferred: it comes again. Dead: it becomes a dead letter.
	Outcome job.Outcome

	Envelope job.Envelope  // the job as it goes on; zero: the payload stays as it is
	Delay    time.Duration // until it is due again, by the store's clock
	DueAt    time.Time     // in place of Delay; zero: Delay counts

	Uncount bool // the attempt does not count
	Crashed bool // a worker died with the job: a crash is counted
	Lapsed  bool // of a delivery of Lapsed: nothing is stored if its lease was renewed since

	Letter *job.DeadLetter // of Outcome Dead; without what the store gives it
}

// Payload returns the message as it goes on: the encoded Envelope, or the delivered payload if the
// Envelope is zero.
func (c *Completion) Payload() []byte {
	if c.Envelope.JobType == "" {
		return c.Delivery.Payload
	}
	encoded, err := c.Envelope.Encode()
	if err != nil { // it was decoded from one
		return c.Delivery.Payload
	}
	return encoded
}
