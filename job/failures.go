package job

import (
	"encoding/json"
	"time"

	"github.com/taskd-go/task/internal/textcut"
)

// MaxFailures is the most failed attempts that a job carries in a queue, with the Runner of
// [Config.Build], and after a replay. Older ones are dropped.
const MaxFailures = 20

const maxErrorText = 1024 // bytes of one error in meta

// An AttemptError is one failed attempt.
type AttemptError struct {
	Attempt int    `json:"attempt"`
	At      int64  `json:"at"` // unix seconds
	Reason  Reason `json:"reason"`
	Error   string `json:"error"`
}

// Failures returns the failed attempts that e carries in its meta under MetaErrors, the newest
// last. It returns nil for a job that carries none, and for one whose entry cannot be read.
func Failures(e Envelope) []AttemptError {
	data, err := json.Marshal(e.Meta[MetaErrors])
	if err != nil {
		return nil
	}
	var failures []AttemptError
	if json.Unmarshal(data, &failures) != nil {
		return nil
	}
	return failures
}

// WithFailure returns a copy of e that carries failed too. Of all its failed attempts it keeps the
// newest keep.
func WithFailure(e Envelope, failed AttemptError, keep int) Envelope {
	e.Meta = cloned(e.Meta)
	setFailures(e.Meta, append(Failures(e), failed), keep)
	return e
}

// setFailures writes the newest keep failures into meta, in the types that Decode would read.
func setFailures(meta map[string]any, failures []AttemptError, keep int) {
	failures = failures[max(0, len(failures)-max(keep, 0)):]
	list := make([]any, len(failures))
	for i, f := range failures {
		list[i] = map[string]any{
			"attempt": number(int64(f.Attempt)), "at": number(f.At), "reason": string(f.Reason), "error": f.Error,
		}
	}
	meta[MetaErrors] = list
}

func attemptError(attempt int, reason Reason, err error) AttemptError {
	text := textcut.To(err.Error(), maxErrorText)
	return AttemptError{Attempt: attempt, At: time.Now().Unix(), Reason: reason, Error: text}
}
