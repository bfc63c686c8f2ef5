package job

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"
)

// Meta keys that this package writes.
const (
	MetaDeferredSince = "deferredSinceMs" // unix milliseconds of the first of the present deferrals
	MetaErrors        = "errors"          // the last failed attempts, see Runner.KeepErrors
	MetaReplays       = "replays"         // how often the job came back from the dead letters
)

const maxErrorText = 1024 // bytes of one error in meta

// An AttemptError is one failed attempt.
type AttemptError struct {
	Attempt int    `json:"attempt"`
	At      int64  `json:"at"` // unix seconds
	Reason  Reason `json:"reason"`
	Error   string `json:"error"`
}

func attemptError(attempt int, reason Reason, err error) AttemptError {
	text := err.Error()
	if cut := maxErrorText; len(text) > cut {
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return AttemptError{Attempt: attempt, At: time.Now().Unix(), Reason: reason, Error: text}
}

// requeuedMeta is meta after a failed attempt: no deferral any more, and one error more of at most keep.
func requeuedMeta(meta map[string]any, keep int, failed AttemptError) map[string]any {
	if _, deferred := meta[MetaDeferredSince]; !deferred && keep <= 0 {
		return meta
	}
	meta = cloned(meta)
	delete(meta, MetaDeferredSince)
	if keep > 0 {
		setErrors(meta, append(metaErrors(meta), failed), keep)
	}
	return meta
}

// setErrors writes the last keep of failed into meta, as a decoder would have read them.
func setErrors(meta map[string]any, failed []AttemptError, keep int) {
	failed = failed[max(0, len(failed)-keep):]
	list := make([]any, len(failed))
	for i, f := range failed {
		list[i] = map[string]any{
			"attempt": number(int64(f.Attempt)), "at": number(f.At), "reason": string(f.Reason), "error": f.Error,
		}
	}
	meta[MetaErrors] = list
}

// metaErrors reads back what setErrors wrote; what is not of that shape is left out.
func metaErrors(meta map[string]any) []AttemptError {
	data, err := json.Marshal(meta[MetaErrors])
	if err != nil {
		return nil
	}
	var kept []AttemptError
	if json.Unmarshal(data, &kept) != nil {
		return nil
	}
	return kept
}

func deferredMeta(meta map[string]any, now time.Time) map[string]any {
	meta = cloned(meta)
	meta[MetaDeferredSince] = number(now.UnixMilli())
	return meta
}

// deferredSince is the time of the first deferral; a stamp from the future counts as now.
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
