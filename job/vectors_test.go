package job

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// differs names the cases where this package does something else than the file expects, and why.
// All of them are side effects of the original's language, which the file leaves free.
var differs = map[string]string{
	"meta_list":                    "meta of another kind than object is empty",
	"attempt_junk_string":          "what is no whole number is refused",
	"attempt_alpha":                "what is no whole number is refused",
	"attempt_fraction":             "what is no whole number is refused",
	"attempt_bool":                 "what is no whole number is refused",
	"v_string":                     "what is no whole number is refused",
	"multiplier_is_file_first":     "the environment overrides the file for every setting",
	"fractional_timeout_truncated": "1.5 s is 1.5 s",
}

// noOperation names parts of the files that this package has no operation for.
var noOperation = map[string]string{
	"dead_letter.json key": "the Redis driver makes the key of a list; ReadConfig reads the prefix",
	"dead_letter.json pop": "a letter is published before it is removed; TestDeadLetterEntries reads the entries",
	"dead_letter.json cli": "the command line is in cmd/taskd",
	"dead_letter.json replay crash_between_pop_and_publish": "a letter is always in one place: " +
		"TestReplayRemovesAfterPublishing",
}

func vector[T any](t *testing.T, name string) T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var v T
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&v))
	return v
}

// checkEnvelope compares with an envelope as a vector gives it: any member may be left out,
// "<generated>" or "<now>".
func checkEnvelope(t *testing.T, want map[string]any, got Envelope) {
	t.Helper()
	encoded, err := got.Encode()
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, unmarshal(encoded, &members))
	for name, value := range want {
		switch value {
		case "<generated>":
			assert.NotEmpty(t, got.JobID)
		case "<now>":
			assert.InDelta(t, time.Now().Unix(), got.CreatedAt, 60)
		default:
			assert.Equal(t, value, members[name], name)
		}
	}
}

func checkDecodeError(t *testing.T, kind string, err error) {
	t.Helper()
	var decode *DecodeError
	require.ErrorAs(t, err, &decode)
	assert.Equal(t, kind, string(decode.Reason))
	for word, kinds := range map[string]string{"jobType": "missing_job_type", "payload": "payload_not_object"} {
		if kind == kinds {
			assert.ErrorContains(t, err, word)
		}
	}
}
