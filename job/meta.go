package job

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"github.com/taskd-go/task/internal/textcut"
)

// The meta keys that this package writes.
const (
	MetaDeferredSince = "deferredSinceMs" // when the first of the present deferrals in a row was, in unix milliseconds
	MetaErrors        = "errors"          // the newest failed attempts; see Failures and Runner.KeepErrors
	MetaReplays       = "replays"         // how often the job was replayed
)

// requeued returns e after a failed attempt: no longer deferred, and with one failure more if keep
// is positive.
func requeued(e Envelope, keep int, failed AttemptError) Envelope {
	if keep > 0 {
		return WithFailure(e, failed, keep)
	}
	if _, deferred := e.Meta[MetaDeferredSince]; deferred {
		e.Meta = cloned(e.Meta)
		delete(e.Meta, MetaDeferredSince)
	}
	return e
}

func deferredMeta(meta map[string]any, now time.Time) map[string]any {
	meta = cloned(meta)
	meta[MetaDeferredSince] = number(now.UnixMilli())
	return meta
}

// deferredSince returns the time of the first deferral; one in the future counts as now.
func deferredSince(e Envelope, now time.Time) (time.Time, bool) {
	ms, ok := metaInt(e.Meta, MetaDeferredSince)
	if !ok || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(min(ms, now.UnixMilli())), true
}

func metaInt(meta map[string]any, key string) (int64, bool) {
	n, ok := meta[key].(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func cloned(meta map[string]any) map[string]any {
	if meta == nil {
		return map[string]any{}
	}
	return maps.Clone(meta)
}

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

// WithFailure returns a copy of e that also carries failed, and of its failed attempts the newest
// keep. The copy has no MetaDeferredSince, because the attempt ended the deferrals in a row.
func WithFailure(e Envelope, failed AttemptError, keep int) Envelope {
	e.Meta = cloned(e.Meta)
	delete(e.Meta, MetaDeferredSince)
	setFailures(e.Meta, append(Failures(e), failed), keep)
	return e
}

// WithoutHistory returns a copy of e whose meta has neither its failed attempts nor the time of its
// first deferral, as a dead letter has it.
func WithoutHistory(e Envelope) Envelope {
	e.Meta = cloned(e.Meta)
	delete(e.Meta, MetaErrors)
	delete(e.Meta, MetaDeferredSince)
	return e
}

// Replays returns how often e was replayed; its meta has the number under MetaReplays.
func Replays(e Envelope) int {
	n, _ := metaInt(e.Meta, MetaReplays)
	return int(n)
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
