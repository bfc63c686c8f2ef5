package job

import "encoding/json"

// DecodeLegacy reads a message from before there were envelopes: bytes, a string, or a decoded JSON
// value. An object with jobType and one of jobId and v is an envelope and goes through Decode.
// Anything else becomes the payload of a new job of defaultType with 5 attempts: an object or array
// as it is, any other value as {"value": raw}. Text that holds JSON other than an object or array
// stays text. Each call gives such a job a new id, so a redelivery has another one. It returns the
// errors of Decode and of New.
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

// textBody returns text that holds an object or array as it is, and any other text as a JSON
// string.
func textBody(body []byte) []byte {
	if isContainer(body) && json.Valid(body) {
		return body
	}
	quoted, _ := json.Marshal(string(body)) // a string always encodes
	return quoted
}
