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
	NotObject        DecodeReason = "not_object"         // JSON, but not an object
	MissingJobType   DecodeReason = "missing_job_type"   // absent, empty, or not a string
	PayloadNotObject DecodeReason = "payload_not_object" // neither an object nor an array
	NotInteger       DecodeReason = "not_integer"        // v, attempt, maxAttempts or createdAt is not a whole number
)

// A DecodeError says why a message is not an envelope.
type DecodeError struct {
	Reason DecodeReason
	Err    error
}

func (e *DecodeError) Error() string { return "job: " + e.Err.Error() }
func (e *DecodeError) Unwrap() error { return e.Err }

var errNoType = errors.New("jobType must be a non-empty string")

const (
	defaultMaxAttempts = 5
	space              = " \t\r\n" // white space in JSON
)

// Decode reads an envelope. Its errors are *DecodeError.
//
// Only jobType is required. Member names must match exactly; unknown members are ignored. A payload
// that is absent, null or [] becomes {}, and so does a meta that is not an object. The absent
// attempt is 1, the absent maxAttempts 5, the absent createdAt now; attempt and maxAttempts are at
// least 1. Integers may be written as 4, 4.0 or "4"; any other value is refused. A version newer
// than Version is kept: the Runner defers such a job.
//
// A message without a jobId gets an id derived from its type, payload, meta and createdAt, so that
// a redelivery has the same id. Two jobs that agree in all four get one id.
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
	// A meta that is a list or a text is no reason to lose the job.
	if isEmpty(m.meta) || unmarshal(m.meta, &e.Meta) != nil || e.Meta == nil {
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

// derivedID returns an id in the form of a generated one; its digits are not a date.
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

// checkPayload returns raw without the space around it, and {} for an absent, null or empty one.
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
	if len(data) < 2 || !isContainer(data) || data[len(data)-1] != data[0]+2 { // ']' and '}' are their openers + 2
		return false
	}
	return len(bytes.Trim(data[1:len(data)-1], space)) == 0
}

// text returns the string that raw holds, "" for any other value.
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

// integer reads a whole number, or a string of digits; numbers beyond an int64 become its smallest
// or largest.
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

// unmarshal is like json.Unmarshal, but a number in an any becomes a json.Number.
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

// plainMeta returns a deep copy of meta in the types that a decoder of the message gets.
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

// members are the values of an envelope's members as the message has them, nil for an absent one.
// They are cut out by hand because encoding/json either takes "JOBTYPE" for jobType or copies every
// value into a map.
type members struct {
	v, jobID, jobType, payload, meta, attempt, maxAttempts, createdAt json.RawMessage
}

func (m *members) named(name string) *json.RawMessage {
	switch name {
	case "v":
		return &m.v
	case "jobId":
		return &m.jobID
	case "jobType":
		return &m.jobType
	case "payload":
		return &m.payload
	case "meta":
		return &m.meta
	case "attempt":
		return &m.attempt
	case "maxAttempts":
		return &m.maxAttempts
	case "createdAt":
		return &m.createdAt
	}
	return nil
}

// cutMembers finds the members of a valid JSON object. Of two members with one name the last one
// counts.
func cutMembers(object []byte) (m members) {
	for rest := skipSpace(object)[1:]; ; {
		rest = skipSpace(rest)
		switch rest[0] {
		case '}':
			return m
		case ',':
			rest = skipSpace(rest[1:])
		}
		name := rest[:stringEnd(rest)]
		rest = skipSpace(skipSpace(rest[len(name):])[1:]) // past the colon
		value := rest[:valueEnd(rest)]
		if into := m.named(text(name)); into != nil {
			*into = value
		}
		rest = rest[len(value):]
	}
}

func skipSpace(data []byte) []byte { return bytes.TrimLeft(data, space) }

// stringEnd returns the length of the string at the start of data.
func stringEnd(data []byte) int {
	for i := 1; ; i++ {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

// valueEnd returns the length of the value at the start of data.
func valueEnd(data []byte) int {
	depth := 0
	for i := 0; ; {
		switch data[i] {
		case '"':
			i += stringEnd(data[i:])
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 { // the end of the object around a number or a word
				return i
			}
			depth--
			i++
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
}
