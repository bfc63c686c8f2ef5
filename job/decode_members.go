package job

import (
	"bytes"
	"encoding/json"
)

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
