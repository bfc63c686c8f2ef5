package job

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"
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
	if _, deferred := e.Meta[MetaDeferredSince]; deferred {
		e.Meta = cloned(e.Meta)
		delete(e.Meta, MetaDeferredSince)
	}
	if keep > 0 {
		e = WithFailure(e, failed, keep)
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
