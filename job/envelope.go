package job

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Version is the envelope version that this package writes and runs.
const Version = 1

// An Envelope is one job as it travels. Copies of it share Payload and Meta, which must not be
// changed in place.
type Envelope struct {
	V           int             `json:"v"`
	JobID       string          `json:"jobId"`
	JobType     string          `json:"jobType"`
	Payload     json.RawMessage `json:"payload"`     // an object or array, never null
	Meta        map[string]any  `json:"meta"`        // numbers as json.Number
	Attempt     int             `json:"attempt"`     // number of this run, from 1
	MaxAttempts int             `json:"maxAttempts"` // at least 1; Unlimited: no limit
	CreatedAt   int64           `json:"createdAt"`   // unix seconds
}

// New returns the envelope of a new job: a new id, attempt 1, created now, with the policy's
// MaxAttempts. The payload must encode to a JSON object or array; nil becomes an empty object. New
// returns a *DecodeError for an envelope that Decode would refuse, such as one with an empty
// jobType.
func New(jobType string, payload any, meta map[string]any, p RetryPolicy) (Envelope, error) {
	if jobType == "" {
		return Envelope{}, &DecodeError{Reason: MissingJobType, Err: errNoType}
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return Envelope{}, fmt.Errorf("job: payload of %q: %w", jobType, err)
	}
	if raw, err = checkPayload(raw); err != nil {
		return Envelope{}, err
	}
	m, err := plainMeta(meta)
	if err != nil {
		return Envelope{}, fmt.Errorf("job: meta of %q: %w", jobType, err)
	}
	now := time.Now()
	return Envelope{
		V: Version, JobID: newID("job", now), JobType: jobType, Payload: raw, Meta: m,
		Attempt: 1, MaxAttempts: p.normal().MaxAttempts, CreatedAt: now.Unix(),
	}, nil
}

// Encode returns the envelope as JSON, with the members in the order of the struct and an empty
// Payload or nil Meta as {}. Bytes of the payload that are not UTF-8 become U+FFFD. A payload that
// is not an object or array is a *DecodeError.
func (e Envelope) Encode() ([]byte, error) {
	payload, err := checkPayload(e.Payload)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(payload) {
		payload = bytes.ToValidUTF8(payload, []byte("\uFFFD"))
	}
	e.Payload = payload
	if e.Meta == nil {
		e.Meta = map[string]any{}
	}
	type plain Envelope // without MarshalJSON
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain(e)); err != nil {
		return nil, fmt.Errorf("job: encode %s: %w", e.JobID, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// MarshalJSON implements json.Marshaler by Encode.
func (e Envelope) MarshalJSON() ([]byte, error) { return e.Encode() }

// UnmarshalJSON implements json.Unmarshaler by Decode.
func (e *Envelope) UnmarshalJSON(data []byte) (err error) {
	*e, err = Decode(data)
	return err
}

// WithAttempt returns a copy of e with the attempt n, at least 1.
func (e Envelope) WithAttempt(n int) Envelope {
	e.Attempt = max(1, n)
	return e
}

// MetaString returns the meta value of key if it is a non-empty string, else fallback.
func (e Envelope) MetaString(key, fallback string) string {
	if s, ok := e.Meta[key].(string); ok && s != "" {
		return s
	}
	return fallback
}

// Bind decodes the payload into v, a pointer. Numbers keep their 64 bits; in an any they are
// json.Number. Some producers write an empty object as []: where v has an object, at any depth,
// Bind takes [] for {}. An empty payload fits a slice as well.
func (e Envelope) Bind(v any) error {
	payload, err := checkPayload(e.Payload)
	if err != nil {
		return err
	}
	err = bind(payload, v)
	if err != nil && isEmpty(payload) && unmarshal([]byte("[]"), v) == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("job: payload of %s (%s): %w", e.JobID, e.JobType, err)
	}
	return nil
}

// bind decodes data. It replaces each [] in the place of an object by {} and starts again.
func bind(data []byte, v any) error {
	for owned := false; ; owned = true {
		err := unmarshal(data, v)
		var mismatch *json.UnmarshalTypeError
		if !errors.As(err, &mismatch) || mismatch.Value != "array" {
			return err
		}
		start, end, ok := emptyArrayAt(data, int(mismatch.Offset)-1)
		if !ok {
			return err
		}
		if !owned {
			data = bytes.Clone(data)
		}
		data[start], data[end] = '{', '}'
	}
}

func emptyArrayAt(data []byte, start int) (_, end int, ok bool) {
	if start < 0 || start >= len(data) || data[start] != '[' {
		return 0, 0, false
	}
	end = start + 1 + len(data[start+1:]) - len(bytes.TrimLeft(data[start+1:], space))
	return start, end, end < len(data) && data[end] == ']'
}

// newID returns an id that is unique by its 48 random bits. The time in it is for people, not for
// parsing.
func newID(prefix string, now time.Time) string {
	var b [6]byte
	rand.Read(b[:])
	return prefix + "_" + now.UTC().Format("20060102150405") + "_" + hex.EncodeToString(b[:])
}
