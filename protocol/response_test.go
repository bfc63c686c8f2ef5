package protocol

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResponsesComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Response{
		"a value":              {ID: 7, OK: true, Data: []byte{0xa2, 'o', 'k'}, TaskID: 12},
		"a business value -2":  {ID: 7, OK: true, Data: []byte{0xfe}, TaskID: 12},
		"nil":                  {ID: 7, OK: true, Data: []byte{0xc0}, TaskID: math.MaxUint64},
		"largest id":           {ID: math.MaxUint64, OK: true, Data: []byte{0xc0}},
		"busy":                 {ID: 1 << 40, Status: StatusBusy, Data: []byte{0xc0}},
		"a message":            {ID: 300, Status: StatusTaskError, Data: AppendText(nil, "boom"), TaskID: 70_000},
		"a status of tomorrow": {ID: 300, Status: -1000, Data: []byte{0xc0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseResponse(AppendResponse(nil, &r))
			require.NoError(t, err)
			assert.Equal(t, r, got)

			inParts := AppendResponseHead(nil, r.ID, r.OK, r.Status)
			inParts = AppendResponseTail(append(inParts, r.Data...), r.TaskID)
			assert.Equal(t, AppendResponse(nil, &r), inParts)
		})
	}
}

func TestNoDataIsNil(t *testing.T) {
	t.Parallel()
	got, err := ParseResponse(AppendResponse(nil, &Response{ID: 1, OK: true}))
	require.NoError(t, err)
	assert.Equal(t, []byte{0xc0}, got.Data)
}

func TestParseResponseReadsWhatOtherWorkersSend(t *testing.T) {
	t.Parallel()
	five, err := ParseResponse(marshal(t, []any{1, 7, true, 0, "x"}))
	require.NoError(t, err)
	assert.Equal(t, Response{ID: 7, OK: true, Data: []byte{0xa1, 'x'}}, five)

	seven, err := ParseResponse(marshal(t, []any{1, int64(7), false, int64(-2), nil, uint64(9), []int{1}}))
	require.NoError(t, err)
	assert.Equal(t, Response{ID: 7, Status: StatusBusy, Data: []byte{0xc0}, TaskID: 9}, seven)
}

func TestParseResponseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body []byte
		id   uint64
		says string
	}{
		"an empty body":        {nil, 0, "response is empty"},
		"four elements":        {marshal(t, []any{1, 7, true, 0}), 0, "4 elements, 5 are needed"},
		"version 2":            {marshal(t, []any{2, 7, true, 0, nil}), 7, "version is 2"},
		"an id in words":       {marshal(t, []any{1, "7", true, 0, nil}), 0, "response id"},
		"ok as a number":       {marshal(t, []any{1, 7, 1, 0, nil}), 7, "response ok is 1"},
		"ok with a status":     {marshal(t, []any{1, 7, true, -2, nil}), 7, "with ok it must be 0"},
		"a failure without":    {marshal(t, []any{1, 7, false, 0, nil}), 7, "below 0"},
		"a status above 0":     {marshal(t, []any{1, 7, false, 5, nil}), 7, "below 0"},
		"a huge status":        {marshal(t, []any{1, 7, false, int64(math.MinInt64), nil}), 7, "fit 32 bits"},
		"a negative task id":   {marshal(t, []any{1, 7, true, 0, nil, -1}), 7, "response task id is -1"},
		"bytes behind it":      {append(marshal(t, []any{1, 7, true, 0, nil}), 0), 7, "1 bytes follow"},
		"data that never ends": {append(marshal(t, []any{1, 7, true, 0, nil})[:5], 0xdd, 4, 0, 0, 0), 7, "claims more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseResponse(c.body)
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, StatusProtocol, e.Status)
			assert.Equal(t, c.id, e.ID)
			assert.Contains(t, e.Text, c.says)
		})
	}
}

func nextResponse(t *testing.T, frame []byte) *Response {
	t.Helper()
	body, _, err := NewReader(bytes.NewReader(frame), DefaultPackageSize).Next()
	require.NoError(t, err)
	r, err := ParseResponse(body)
	require.NoError(t, err)
	return &r
}

func TestAGreetingIsNoNotice(t *testing.T) {
	t.Parallel()
	want := Greeting{Index: 511, Generation: math.MaxUint64, PID: 4_000_000, MaxPackageSize: DefaultPackageSize}
	r := nextResponse(t, AppendGreeting(nil, want))
	got, ok := ParseGreeting(r)
	assert.True(t, ok)
	assert.Equal(t, want, got)
	_, ok = ParseNotice(r)
	assert.False(t, ok)
}

func TestANoticeIsNoGreeting(t *testing.T) {
	t.Parallel()
	for _, last := range []uint64{0, 5, math.MaxUint64} {
		r := nextResponse(t, AppendNotice(nil, last))
		got, ok := ParseNotice(r)
		assert.True(t, ok)
		assert.Equal(t, last, got)
		_, ok = ParseGreeting(r)
		assert.False(t, ok)
	}
}

func TestOtherResponsesAreNeither(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Response{
		"an answer":                   {ID: 7, OK: true, Data: marshal(t, []int{1, 2, 3, 4})},
		"busy with an id":             {ID: 7, Status: StatusBusy, Data: []byte{5}},
		"a refusal without an id":     {Status: StatusProtocol, Data: AppendText(nil, "cut short")},
		"busy in words":               {Status: StatusBusy, Data: AppendText(nil, "drained")},
		"a greeting of three":         {OK: true, Data: marshal(t, []int{1, 2, 3})},
		"a greeting with a minus":     {OK: true, Data: marshal(t, []int{-1, 2, 3, 4})},
		"another status and a number": {Status: StatusIllegal, Data: []byte{5}},
		"a notice without data":       {Status: StatusBusy},
		"a notice with a negative id": {Status: StatusBusy, Data: []byte{0xff}},
		"a notice and more":           {Status: StatusBusy, Data: []byte{5, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := ParseGreeting(r)
			assert.False(t, ok, "greeting")
			_, ok = ParseNotice(r)
			assert.False(t, ok, "notice")
		})
	}
}

func TestTextIsTheMessageOfARefusal(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "boom", (&Response{Data: AppendText(nil, "boom")}).Text())
	for _, data := range [][]byte{nil, {0xc0}, {5}, {0xa5, 'a'}, {0xa1, 'a', 'b'}} {
		assert.Empty(t, (&Response{Data: data}).Text())
	}
}

func TestStatusesSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for status, want := range map[Status]string{
		StatusOK: "ok (0)", StatusBusy: "task process busy (-2)", StatusProtocol: "task package protocol error (-3)",
		StatusIllegal: "task package illegal (-4)", StatusTaskError: "task run error (-5)",
		StatusExpired:     "task package expire (-6)",
		StatusSockTimeout: "task sock timeout (-7)", StatusPackageTooLarge: "task package too large (-8)",
		StatusResponseTooLarge: "task response too large (-9)", -1000: "unknown task status (-1000)",
	} {
		assert.EqualError(t, status, want)
	}
}

func TestResponsesAllocateNothing(t *testing.T) {
	r := Response{ID: 7, OK: true, Data: []byte{0xa2, 'o', 'k'}, TaskID: 12}
	buf := make([]byte, 0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		got, err := ParseResponse(AppendResponse(buf, &r))
		if err != nil || got.ID != 7 {
			t.Error(err)
		}
	}))
}
