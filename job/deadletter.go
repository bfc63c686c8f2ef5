package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A DeadLetter is a job that will not be tried again on its own, or a message that holds no job.
type DeadLetter struct {
	ID         string         `json:"id"`    // of this letter; the store gives it
	Queue      string         `json:"queue"` // where the job came from
	Job        Envelope       `json:"job,omitzero"`
	Error      string         `json:"error"`
	Reason     Reason         `json:"reason"`
	ErrorClass string         `json:"errorClass,omitempty"` // see ErrorClass
	At         int64          `json:"at"`                   // when it died, in unix seconds
	Attempts   []AttemptError `json:"attempts,omitempty"`   // the known failed attempts, the last one included
	Replays    int            `json:"replays,omitempty"`    // how often it had been replayed before it died this time
	Raw        []byte         `json:"raw,omitempty"`        // the message, if it is not an envelope
	Broken     string         `json:"broken,omitempty"`     // why it cannot be replayed; Replay passes over it
}

// DeadLetters stores dead letters, the oldest first. It is safe for concurrent use. Only Remove
// removes a letter.
type DeadLetters interface {
	// Put stores d and returns its id, a new one if d has none. It replaces a letter of the same
	// id, which keeps its place in the order.
	Put(ctx context.Context, d DeadLetter) (id string, err error)
	// Page returns up to limit letters of a queue, from cursor on; "" is every queue, and the
	// cursor of the oldest letter. next is the cursor of the next page, "" at the end.
	Page(ctx context.Context, queue, cursor string, limit int) (page []DeadLetter, next string, err error)
	// Get returns the letter of that id, or ErrNoDeadLetter.
	Get(ctx context.Context, id string) (DeadLetter, error)
	// Remove removes the letters of these ids and returns how many of them there were.
	Remove(ctx context.Context, ids ...string) (n int, err error)
	// Len counts the letters of a queue; "" is every queue.
	Len(ctx context.Context, queue string) (int, error)
}

// ErrNoDeadLetter says that a store has no letter of the id.
var ErrNoDeadLetter = errors.New("job: no such dead letter")

// DefaultQueue is the queue of a dead letter that names none.
const DefaultQueue = "default"

// NewDeadLetter returns the letter of a job of queue ("" is DefaultQueue) that died for reason; a
// nil reason counts as ReasonFailed. It moves the earlier failures from the envelope's meta to
// Attempts, and adds this one.
func NewDeadLetter(queue string, failed Envelope, reason error) DeadLetter {
	if reason == nil {
		reason = &DeadError{Reason: ReasonFailed}
	}
	last := attemptError(failed.Attempt, reasonOf(reason), reason)
	return DeadLetter{
		Queue: orDefault(queue), Job: WithoutHistory(failed), Error: reason.Error(), Reason: last.Reason, At: last.At,
		ErrorClass: ErrorClass(reason), Attempts: append(Failures(failed), last), Replays: Replays(failed),
	}
}

// RawDeadLetter returns the letter of a message that Decode refused with err.
func RawDeadLetter(queue string, message []byte, err error) DeadLetter {
	return DeadLetter{
		Queue: orDefault(queue), Raw: message, Error: err.Error(), Reason: ReasonDecode,
		ErrorClass: string(ReasonDecode), At: time.Now().Unix(), Broken: err.Error(),
	}
}

// DeadLetterTo returns a DeadFunc that stores the jobs of queue ("" is DefaultQueue) in store.
func DeadLetterTo(store DeadLetters, queue string) DeadFunc {
	return func(ctx context.Context, failed Envelope, reason error) error {
		_, err := store.Put(ctx, NewDeadLetter(queue, failed, reason))
		return err
	}
}

// DecodeDeadLetter reads what json.Marshal makes of a DeadLetter. It also reads an entry of the
// Redis list that other programs of the job format share, {"job": …, "error": …, "at": …}. It
// accepts any data: a letter whose job cannot be read has the data in Raw and the reason in Broken.
func DecodeDeadLetter(data []byte) DeadLetter {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return DeadLetter{Queue: DefaultQueue, Raw: data, Reason: ReasonDecode, Broken: err.Error()}
	}
	d := DeadLetter{
		ID: text(members["id"]), Queue: orDefault(text(members["queue"])), Error: text(members["error"]),
		Reason: Reason(text(members["reason"])), ErrorClass: text(members["errorClass"]), Broken: text(members["broken"]),
	}
	d.At, _ = integer(members["at"], 0)
	replays, _ := integer(members["replays"], 0)
	d.Replays = int(replays)
	_ = unmarshal(members["attempts"], &d.Attempts) // what cannot be read is left out
	_ = unmarshal(members["raw"], &d.Raw)
	job, err := Decode(members["job"])
	switch {
	case err == nil:
		d.Job = job
	case d.Raw == nil:
		d.Raw, d.Broken = data, fmt.Sprintf("its job cannot be read: %v", err)
	}
	return d
}

func orDefault(queue string) string {
	if queue == "" {
		return DefaultQueue
	}
	return queue
}
