package job

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecodeVectors(t *testing.T) {
	t.Parallel()
	type expect struct {
		OK        bool
		Envelope  map[string]any
		ErrorKind string `json:"error_kind"`
	}
	file := vector[struct {
		Cases []struct {
			Name   string
			Input  string `json:"input_json"`
			Expect expect
		}
	}](t, "envelope_decode.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := Decode([]byte(c.Input))
			switch {
			case c.Name == "meta_list":
				require.NoError(t, err)
				assert.Empty(t, got.Meta, differs[c.Name])
			case differs[c.Name] != "":
				checkDecodeError(t, "not_integer", err)
			case !c.Expect.OK:
				checkDecodeError(t, c.Expect.ErrorKind, err)
			default:
				require.NoError(t, err)
				checkEnvelope(t, c.Expect.Envelope, got)
				again, err := got.Encode()
				require.NoError(t, err)
				back, err := Decode(again)
				require.NoError(t, err)
				assert.Equal(t, got, back, "round trip")
			}
		})
	}
}

func TestDecodeLegacyVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Cases []struct {
			Name        string
			InputKind   string `json:"input_kind"`
			Input       string
			DefaultType string `json:"default_job_type"`
			Expect      map[string]any
		}
	}](t, "envelope_wrap_legacy.json")
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			inputs := map[string]any{"string": c.Input, "bytes": []byte(c.Input)}
			if c.InputKind == "json" {
				var value any
				require.NoError(t, unmarshal([]byte(c.Input), &value))
				inputs = map[string]any{"decoded": value, "raw": json.RawMessage(c.Input)}
			}
			for kind, input := range inputs {
				got, err := DecodeLegacy(input, c.DefaultType)
				if c.Expect["ok"] != true {
					checkDecodeError(t, c.Expect["error_kind"].(string), err)
					continue
				}
				require.NoError(t, err, kind)
				delete(c.Expect, "ok")
				delete(c.Expect, "treated_as")
				checkEnvelope(t, c.Expect, got)
				c.Expect["ok"] = true
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for message, reason := range map[string]DecodeReason{
		"": NotJSON, "{": NotJSON, "\xff": NotJSON, `{"jobType":"t"} {}`: NotJSON,
		"5": NotObject, `"x"`: NotObject, "[1]": NotObject, "null": NotObject,
		"[]": MissingJobType, " [ ] ": MissingJobType, `{"JOBTYPE":"t"}`: MissingJobType,
		`{"jobType":"t","createdAt":"soon"}`: NotInteger,
	} {
		_, err := Decode([]byte(message))
		var decode *DecodeError
		require.ErrorAs(t, err, &decode, "%q", message)
		assert.Equal(t, reason, decode.Reason, "%q", message)
	}
}

func TestDecodeReadsNumbersInEverySpelling(t *testing.T) {
	t.Parallel()
	for spelling, want := range map[string]int{
		"4": 4, "4.0": 4, "4e0": 4, `"4"`: 4, "1e99": Unlimited, "-1e99": 1, "99999999999999999999": Unlimited,
	} {
		e, err := Decode([]byte(`{"jobType":"t","maxAttempts":` + spelling + `}`))
		require.NoError(t, err, spelling)
		assert.Equal(t, want, e.MaxAttempts, spelling)
	}
}

func TestARedeliveryWithoutAnIDHasTheSameOne(t *testing.T) {
	t.Parallel()
	first, err := Decode([]byte(`{"jobType":"t","payload":{"n":1},"createdAt":5}`))
	require.NoError(t, err)
	again, err := Decode([]byte(`{"__retry_num":1, "createdAt":5, "payload":{"n":1},"attempt":2,"jobType":"t"}`))
	require.NoError(t, err)
	assert.Equal(t, first.JobID, again.JobID)
	assert.Regexp(t, `^job_\d{14}_[0-9a-f]{12}$`, first.JobID)
	for _, other := range []string{
		`{"jobType":"t","payload":{"n":2},"createdAt":5}`,
		`{"jobType":"t","payload":{"n":1},"createdAt":6}`,
		`{"jobType":"u","payload":{"n":1},"createdAt":5}`,
		`{"jobType":"t","payload":{"n":1},"meta":{"a":1},"createdAt":5}`,
	} {
		e, err := Decode([]byte(other))
		require.NoError(t, err)
		assert.NotEqual(t, first.JobID, e.JobID, other)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"v":1,"jobId":"j","jobType":"a","payload":[],"meta":{"n":1},"attempt":2,"maxAttempts":3,` +
		`"createdAt":4}`))
	f.Add([]byte(`{"jobType":"a","attempt":"4","createdAt":1e400}`))
	f.Add([]byte(" {\t\"job\\u0054ype\" : \"a\\\"}\" ,\n\"payload\": [ {\"]\":[]} , 1 ],\"v\":2 }\r\n"))
	f.Add([]byte(`{"jobType":"a","jobType":"b","meta":null,"payload":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkMembers(t, data)
		e, err := Decode(data)
		if err != nil {
			return
		}
		encoded, err := e.Encode()
		require.NoError(t, err)
		back, err := Decode(encoded)
		require.NoError(t, err)
		require.Equal(t, e.JobID, back.JobID)
		require.Equal(t, e.Attempt, back.Attempt)
		require.Equal(t, e.JobType, back.JobType)
	})
}

// checkMembers compares the members that cutMembers finds with what encoding/json does.
func checkMembers(t *testing.T, data []byte) {
	var want map[string]json.RawMessage
	if json.Unmarshal(data, &want) != nil || want == nil {
		return
	}
	m := cutMembers(data)
	for _, name := range []string{"v", "jobId", "jobType", "payload", "meta", "attempt", "maxAttempts", "createdAt"} {
		require.Equal(t, string(want[name]), string(*m.named(name)), name)
	}
}
