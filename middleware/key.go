package middleware

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/taskd-go/task/job"
)

// A KeyFunc names what a layer guards for one job: jobs with the same key share leases and counts. "" means
// that the job has no key; the layer then fails it with a *KeyError instead of running it unguarded or under a
// key of other jobs. It must be safe for concurrent use.
type KeyFunc func(e job.Envelope) string

// Key returns s for every job. A {name} in s stands for that member of the job's payload object, a text, a
// number or a truth value: Key("import_supplier_{supplier_id}"). When s has more than one, each value is
// quoted, so that two jobs have one key only if they agree in every member. A payload without the member, or
// with null, an empty text, an object or an array there, has no key. Braces around nothing, or without a partner, are text.
func Key(s string) KeyFunc {
	parts := parse(s)
	if len(parts) == 1 {
		return func(job.Envelope) string { return s }
	}
	return func(e job.Envelope) string { return fill(parts, e.Payload) }
}

// parse splits s into text and member names in turn; it begins and ends with a text.
func parse(s string) []string {
	var parts []string
	text := ""
	for {
		before, rest, opened := strings.Cut(s, "{")
		name, after, closed := strings.Cut(rest, "}")
		switch {
		case !opened:
			return append(parts, text+s)
		case !closed || name == "" || strings.Contains(name, "{"):
			text += before + "{"
			s = rest
		default:
			parts = append(parts, text+before, name)
			text, s = "", after
		}
	}
}

func fill(parts []string, payload json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return ""
	}
	key := parts[0]
	for i := 1; i < len(parts); i += 2 {
		value, ok := scalar(members[parts[i]])
		if !ok {
			return ""
		}
		if len(parts) > 3 {
			value = strconv.Quote(value)
		}
		key += value + parts[i+1]
	}
	return key
}

func scalar(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '{', '[', 'n':
		return "", false
	case '"':
		err := json.Unmarshal(raw, &text)
		return text, err == nil && text != ""
	default:
		return string(raw), true
	}
}
