package job

import (
	"bytes"
	"encoding/json"
	"fmt"
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

func TestAccessorVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		WithAttempt struct {
			Cases []struct{ Input, Expect int }
		} `json:"with_attempt"`
		MetaString struct {
			Cases []struct {
				Meta         map[string]any
				Key, Default string
				Expect       string
				Without      *string `json:"expect_without_default"`
			}
		} `json:"meta_string"`
		Order []string `json:"to_array_field_order"`
		JobID struct {
			Pattern string `json:"original_pattern"`
		} `json:"job_id"`
	}](t, "envelope_accessors.json")

	for _, c := range file.WithAttempt.Cases {
		t.Run(fmt.Sprintf("with_attempt %d", c.Input), func(t *testing.T) {
			e := Envelope{V: 1, JobID: "J", JobType: "t", Attempt: 2, MaxAttempts: 3, CreatedAt: 9}
			want := e
			want.Attempt = c.Expect
			assert.Equal(t, want, e.WithAttempt(c.Input))
			assert.Equal(t, 2, e.Attempt, "the receiver is unchanged")
		})
	}
	for i, c := range file.MetaString.Cases {
		t.Run(fmt.Sprintf("meta_string %d", i), func(t *testing.T) {
			e := Envelope{Meta: c.Meta}
			assert.Equal(t, c.Expect, e.MetaString(c.Key, c.Default))
			without := ""
			if c.Without != nil {
				without = *c.Without
			}
			assert.Equal(t, without, e.MetaString(c.Key, ""))
		})
	}
	t.Run("member order", func(t *testing.T) {
		data, err := json.Marshal(Envelope{JobType: "t"})
		require.NoError(t, err)
		last := -1
		for _, name := range file.Order {
			at := bytes.Index(data, []byte(`"`+name+`":`))
			assert.Greater(t, at, last, name)
			last = at
		}
		assert.Contains(t, string(data), `"payload":{},"meta":{}`)
	})
	t.Run("job id", func(t *testing.T) {
		e, err := New("t", nil, nil, RetryPolicy{})
		require.NoError(t, err)
		assert.Regexp(t, file.JobID.Pattern, e.JobID)
	})
}
