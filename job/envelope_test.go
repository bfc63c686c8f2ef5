package job

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewRefusesWhatNoConsumerCouldRead(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]any{
		"a number": 5, "a string": "x", "bytes": []byte("{}"), "a function": func() {}, "raw text": json.RawMessage("{"),
	} {
		_, err := New("t", payload, nil, RetryPolicy{})
		assert.Error(t, err, name)
	}
	_, err := New("t", nil, map[string]any{"f": func() {}}, RetryPolicy{})
	assert.Error(t, err)
	_, err = New("", nil, nil, RetryPolicy{})
	checkDecodeError(t, "missing_job_type", err)
}

func TestNewIsWhatAReaderSees(t *testing.T) {
	t.Parallel()
	meta := map[string]any{"n": int64(math.MaxInt64), "list": []int{1}}
	e, err := New("t", map[string]uint64{"id": math.MaxUint64}, meta, RetryPolicy{})
	require.NoError(t, err)
	data, err := e.Encode()
	require.NoError(t, err)
	back, err := Decode(data)
	require.NoError(t, err)
	assert.Equal(t, e, back)
	assert.Equal(t, json.Number("9223372036854775807"), back.Meta["n"])
	assert.Equal(t, `{"id":18446744073709551615}`, string(back.Payload))
	assert.Equal(t, 5, e.MaxAttempts)
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

func TestEncodeRefusesAPayloadThatIsNone(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{`"x"`, "5", "{", "[1"} {
		_, err := Envelope{JobType: "t", Payload: json.RawMessage(payload)}.Encode()
		assert.Error(t, err, payload)
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	type customer struct{ Name string }
	type order struct {
		ID       int64
		Customer customer
		Tags     map[string]string
		Lines    []customer
		Extra    any
	}
	bind := func(payload string, v any) error { return Envelope{Payload: json.RawMessage(payload)}.Bind(v) }

	var o order
	require.NoError(t, bind(`{"id":9007199254740993,"customer":[],"tags":[ ],"lines":[[],{"name":"x"}],
		"extra":9007199254740993}`, &o))
	assert.Equal(t, order{ID: 9007199254740993, Tags: map[string]string{}, Lines: []customer{{}, {"x"}},
		Extra: json.Number("9007199254740993")}, o)

	for _, empty := range []string{"", "null", "[]", "{}", " [ ] "} {
		var list []int
		require.NoError(t, bind(empty, &list), empty)
		assert.Empty(t, list)
		var object customer
		require.NoError(t, bind(empty, &object), empty)
	}
	var n int
	assert.Error(t, bind(`[]`, &n))
	assert.Error(t, bind(`{"customer":[1]}`, &o))
	assert.Error(t, bind(`{"id":"x"}`, &o))
	assert.Error(t, bind(`{"customer":"x"}`, &o))

	payload := json.RawMessage(`{"customer":[]}`)
	require.NoError(t, Envelope{Payload: payload}.Bind(&o))
	assert.Equal(t, `{"customer":[]}`, string(payload), "the payload itself is untouched")
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

func BenchmarkEnvelope(b *testing.B) {
	message := []byte(`{"v":1,"jobId":"job_20260712101112_ab12cd34ef56","jobType":"order.paid.notify",` +
		`"payload":{"orderId":10001},"meta":{"tenantId":"t1","idempotencyKey":"order:10001:paid-notify"},` +
		`"attempt":1,"maxAttempts":5,"createdAt":1720764000}`)
	e, err := Decode(message)
	require.NoError(b, err)
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Decode(message); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
