package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A DeadLetter is a job that nobody will try again by himself, or a message that was none.
type DeadLetter struct {
	ID         string         `json:"id"`    // of this letter; the store gives it
	Queue      string         `json:"queue"` // where the job came from
	Job        Envelope       `json:"job,omitzero"`
	Error      string         `json:"error"`
	Reason     Reason         `json:"reason"`
	ErrorClass string         `json:"errorClass,omitempty"` // see ErrorClass
	At         int64          `json:"at"`                   // unix seconds of its death
	Attempts   []AttemptError `json:"attempts,omitempty"`   // as far as they are known, the last one included
	Replays    int            `json:"replays,omitempty"`    // how often it had been replayed before it died this time
	Raw        []byte         `json:"raw,omitempty"`        // the message, when it is no envelope
	Broken     string         `json:"broken,omitempty"`     // why it cannot be replayed; Replay passes over it
}

// DeadLetters keeps dead jobs, the oldest first. It is safe for concurrent use. Nothing is ever removed but by Remove.
type DeadLetters interface {
	// Put stores d and returns its id, a fresh one if d has none. A letter of the same id is replaced in its place.
	Put(ctx context.Context, d DeadLetter) (id string, err error)
	// Page lists up to limit letters of a queue ("" is every queue), from the cursor that an earlier Page returned, or
	// from "", the oldest. next is "" at the end.
	Page(ctx context.Context, queue, cursor string, limit int) (page []DeadLetter, next string, err error)
	// Get returns ErrNoDeadLetter if there is no such letter.
	Get(ctx context.Context, id string) (DeadLetter, error)
	// Remove removes the letters of these ids and says how many there were.
	Remove(ctx context.Context, ids ...string) (n int, err error)
	// Len counts a queue's letters; "" is every queue.
	Len(ctx context.Context, queue string) (int, error)
}

// ErrNoDeadLetter says that a store has no letter of that id.
var ErrNoDeadLetter = errors.New("job: no such dead letter")

// DefaultQueue is the queue of a dead letter whose queue was not named.
const DefaultQueue = "default"

// NewDeadLetter is the letter of a job that died for reason in a queue ("" is DefaultQueue). The earlier attempts
// and the number of replays are taken out of the envelope's meta.
func NewDeadLetter(queue string, failed Envelope, reason error) DeadLetter {
	if reason == nil {
		reason = &DeadError{Reason: ReasonFailed}
	}
	last := attemptError(failed.Attempt, reasonOf(reason), reason)
	replays, _ := metaInt(failed.Meta, MetaReplays)
	d := DeadLetter{
		Queue: orDefault(queue), Job: failed, Error: reason.Error(), Reason: last.Reason, At: last.At,
		ErrorClass: ErrorClass(reason), Attempts: append(Failures(failed), last), Replays: int(replays),
	}
	d.Job.Meta = cloned(failed.Meta)
	delete(d.Job.Meta, MetaErrors)
	delete(d.Job.Meta, MetaDeferredSince)
	return d
}

// RawDeadLetter is the letter of a message that Decode refused with err.
func RawDeadLetter(queue string, message []byte, err error) DeadLetter {
	return DeadLetter{
		Queue: orDefault(queue), Raw: message, Error: err.Error(), Reason: ReasonDecode, ErrorClass: ErrorClass(err), At: time.Now().Unix(),
		Broken: err.Error(),
	}
}

// BuryIn is the DeadFunc that puts the jobs of a queue ("" is DefaultQueue) into store.
func BuryIn(store DeadLetters, queue string) DeadFunc {
	return func(ctx context.Context, failed Envelope, reason error) error {
		_, err := store.Put(ctx, NewDeadLetter(queue, failed, reason))
		return err
	}
}

// DecodeDeadLetter reads what json.Marshal made of a DeadLetter, or an entry of the job document's list. It takes
// whatever it gets: a letter whose job cannot be read holds the text in Raw and the reason in Broken.
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
