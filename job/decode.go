package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// A DecodeReason says what is wrong with a message.
type DecodeReason string

// The decode reasons.
const (
	NotJSON          DecodeReason = "not_json"
	NotObject        DecodeReason = "not_object"         // JSON, but no object
	MissingJobType   DecodeReason = "missing_job_type"   // absent, empty, or no string
	PayloadNotObject DecodeReason = "payload_not_object" // neither an object nor an array
	NotInteger       DecodeReason = "not_integer"        // v, attempt, maxAttempts or createdAt
)

// A DecodeError says why a message is no envelope.
type DecodeError struct {
	Reason DecodeReason
	Err    error
}

func (e *DecodeError) Error() string { return "job: " + e.Err.Error() }
func (e *DecodeError) Unwrap() error { return e.Err }

var errNoType = errors.New("jobType must be a non-empty string")

const (
	defaultMaxAttempts = 5
	space              = " \t\r\n" // as JSON has it
)

// Decode reads an envelope. Its errors are *DecodeError.
//
// Only jobType is required. Member names are matched exactly and unknown ones are ignored. An absent or null payload,
// and [], is {}. Meta of another kind than object is {}. Attempt is 1 and maxAttempts 5 when absent, and at least 1;
// numbers that are whole, and strings of digits, are taken as integers, others are refused. createdAt is now when
// absent. A version newer than ours is kept: the Runner defers such a job.
//
// A message without a jobId gets one that follows from its type, payload, meta and createdAt, so that a redelivery
// has the same id. Two jobs that are equal in all four are then one to whoever looks at ids alone.
func Decode(data []byte) (Envelope, error) {
	switch {
	case !json.Valid(data):
		return Envelope{}, &DecodeError{Reason: NotJSON, Err: json.Unmarshal(data, new(any))}
	case isEmpty(data): // [] is an empty object
		return fromMembers(members{})
	case skipSpace(data)[0] != '{':
		return Envelope{}, &DecodeError{Reason: NotObject, Err: errors.New("an envelope must be a JSON object")}
	}
	return fromMembers(cutMembers(data))
}

func fromMembers(m members) (Envelope, error) {
	e := Envelope{JobType: text(m.jobType)}
	if e.JobType == "" {
		return Envelope{}, &DecodeError{Reason: MissingJobType, Err: errNoType}
	}
	payload, err := checkPayload(m.payload)
	if err != nil {
		return Envelope{}, err
	}
	e.Payload = bytes.Clone(payload)
	if isEmpty(m.meta) || unmarshal(m.meta, &e.Meta) != nil || e.Meta == nil { // a list, a text: no reason to lose the job
		e.Meta = map[string]any{}
	}
	var v, attempt, maxAttempts int64
	for _, number := range [...]struct {
		name   string
		raw    json.RawMessage
		absent int64
		into   *int64
	}{
		{"v", m.v, Version, &v},
		{"attempt", m.attempt, 1, &attempt},
		{"maxAttempts", m.maxAttempts, defaultMaxAttempts, &maxAttempts},
		{"createdAt", m.createdAt, time.Now().Unix(), &e.CreatedAt},
	} {
		if *number.into, err = integer(number.raw, number.absent); err != nil {
			return Envelope{}, &DecodeError{Reason: NotInteger, Err: fmt.Errorf("%s: %w", number.name, err)}
		}
	}
	e.V = int(min(max(v, math.MinInt32), math.MaxInt32))
	e.Attempt = int(min(max(attempt, 1), math.MaxInt32))
	e.MaxAttempts = int(min(max(maxAttempts, 1), Unlimited))
	if e.JobID = text(m.jobID); e.JobID == "" {
		e.JobID = derivedID(e, m.meta, m.createdAt)
	}
	return e, nil
}

// derivedID has the shape of a generated id; its digits are no date.
func derivedID(e Envelope, meta, createdAt json.RawMessage) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(e.JobType), e.Payload, meta, createdAt} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	sum := h.Sum(nil)
	var digits uint64
	for _, b := range sum[:6] {
		digits = digits<<8 | uint64(b)
	}
	return fmt.Sprintf("job_%014d_%s", digits%1e14, hex.EncodeToString(sum[6:12]))
}

// DecodeLegacy reads a message from before there were envelopes: bytes, a string, or a decoded JSON value. What has
// jobType and jobId, or v and jobType, is an envelope and goes through Decode. Anything else becomes the payload of
// a new job of defaultType with 5 attempts, as it is when it is an object or array, and as {"value": raw} otherwise;
// text that is JSON but no object or array stays text. The job gets a fresh id, so a redelivery has another one.
func DecodeLegacy(raw any, defaultType string) (Envelope, error) {
	var data []byte
	switch r := raw.(type) {
	case json.RawMessage:
		data = r
	case []byte:
		data = textBody(r)
	case string:
		data = textBody([]byte(r))
	default:
		encoded, err := json.Marshal(raw)
		if err != nil {
			return Envelope{}, &DecodeError{Reason: NotJSON, Err: err}
		}
		data = encoded
	}
	if !isContainer(data) {
		return New(defaultType, map[string]json.RawMessage{"value": data}, nil, RetryPolicy{})
	}
	if skipSpace(data)[0] == '{' && json.Valid(data) {
		m := cutMembers(data)
		if present(m.jobType) && (present(m.jobID) || present(m.v)) {
			return fromMembers(m)
		}
	}
	return New(defaultType, json.RawMessage(data), nil, RetryPolicy{})
}

// textBody is text that holds an object or array as it is, and any other as a JSON string.
func textBody(body []byte) []byte {
	if isContainer(body) && json.Valid(body) {
		return body
	}
	quoted, _ := json.Marshal(string(body)) // a string always encodes
	return quoted
}

// checkPayload is raw without the space around it; absent, null and an empty array are {}.
func checkPayload(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.Trim(raw, space)
	switch {
	case !present(raw) || isEmpty(raw):
		return json.RawMessage("{}"), nil
	case !isContainer(raw):
		return nil, &DecodeError{Reason: PayloadNotObject, Err: errors.New("payload must be an object or array")}
	}
	return raw, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func isContainer(data []byte) bool {
	data = bytes.TrimLeft(data, space)
	return len(data) > 0 && (data[0] == '{' || data[0] == '[')
}

// isEmpty reports whether data is {} or [], with any space in it.
func isEmpty(data []byte) bool {
	data = bytes.Trim(data, space)
	if len(data) < 2 || !isContainer(data) || data[len(data)-1] != data[0]+2 { // ']' and '}' follow their openers by 2
		return false
	}
	return len(bytes.Trim(data[1:len(data)-1], space)) == 0
}

// text is the string that raw holds, "" for anything else.
func text(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if plain := raw[1 : len(raw)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// integer reads a whole number, or a string of one, as an int64; beyond its range it saturates.
func integer(raw json.RawMessage, absent int64) (int64, error) {
	if !present(raw) {
		return absent, nil
	}
	digits := string(raw)
	if raw[0] == '"' {
		digits = text(raw)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return n, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if raw[0] == '"' || err != nil || f != math.Trunc(f) {
		return 0, fmt.Errorf("%s is not a whole number", raw)
	}
	return int64(min(max(f, -1<<53), 1<<53)), nil
}

// unmarshal is json.Unmarshal with numbers as json.Number in an any.
func unmarshal(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// plainMeta is meta as a reader of the message would see it, in maps of its own.
func plainMeta(meta map[string]any) (map[string]any, error) {
	if len(meta) == 0 {
		return map[string]any{}, nil
	}
	data, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	var plain map[string]any
	if err := unmarshal(data, &plain); err != nil {
		return nil, err
	}
	return plain, nil
}
