package middleware

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/taskd-go/task/job"
)

// A KeyFunc returns the key of a job: jobs with the same key share locks and counts. "" means that
// the job has no key; then the layer fails it with a *KeyError. A KeyFunc must be safe for
// concurrent use.
type KeyFunc func(e job.Envelope) string

// Key returns a KeyFunc that returns s with each {name} replaced by that member of the job's
// payload, a string, number or boolean, as in Key("import_supplier_{supplier_id}"). If s has
// several, each value is quoted, so that two jobs have one key only if they agree in every member.
// A job without the member, or with null, "", an object or an array there, has no key. Empty braces
// and braces without a partner are text.
func Key(s string) KeyFunc {
	parts := parse(s)
	if len(parts) == 1 {
		return func(job.Envelope) string { return s }
	}
	return func(e job.Envelope) string { return fill(parts, e.Payload) }
}

// parse splits s into texts and member names in turn, beginning and ending with a text.
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
