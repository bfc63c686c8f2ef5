package protocol

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// marshal encodes v as another client might.
func marshal(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := msgpack.Marshal(v)
	require.NoError(t, err)
	return raw
}

// with returns the elements of a sound package of eight, with element i replaced.
func with(i int, v any) []any {
	p := []any{1, 2, 7, 0, "task", nil, nil, nil}
	p[i] = v
	return p
}

func appendPackage(dst []byte, p *Package) []byte {
	dst = AppendHead(dst, p)
	dst = append(dst, p.Payload...)
	return AppendTail(dst, p)
}

func TestPackagesComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	full := Package{
		Type: Sync, ID: 1, Expire: 12345, Task: []byte("main.Hello"), Payload: []byte{0x81, 0xa1, 'a', 0x01},
		Meta: map[string]string{"traceparent": "00-1", MetaCancel: "1"}, Soft: time.Second, Hard: 2 * time.Second,
	}
	change := func(f func(*Package)) Package { p := full; f(&p); return p }
	for name, p := range map[string]Package{
		"everything":       full,
		"async":            change(func(p *Package) { p.Type = Async }),
		"alone":            change(func(p *Package) { p.Alone = true }),
		"largest id":       change(func(p *Package) { p.ID = math.MaxUint64 }),
		"already expired":  change(func(p *Package) { p.Expire = -1 }),
		"neither tail":     change(func(p *Package) { p.Meta, p.Soft, p.Hard = nil, 0, 0 }),
		"limits, no meta":  change(func(p *Package) { p.Meta = nil }),
		"meta, no limits":  change(func(p *Package) { p.Soft, p.Hard = 0, 0 }),
		"hard limit alone": change(func(p *Package) { p.Soft = 0 }),
		"nil payload":      change(func(p *Package) { p.Payload = []byte{0xc0} }),
		"long task name":   change(func(p *Package) { p.Task = []byte(strings.Repeat("n", 300)) }),
		"most meta":        change(func(p *Package) { p.Meta = manyPairs(MaxMeta) }),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePackage(appendPackage(nil, &p))
			require.NoError(t, err)
			assert.Equal(t, p, got)
		})
	}
}

func manyPairs(n int) map[string]string {
	m := make(map[string]string)
	for i := range n {
		m[fmt.Sprint("key", i)] = strings.Repeat("v", i%40)
	}
	return m
}

func TestParsePackageReadsWhatOtherClientsSend(t *testing.T) {
	t.Parallel()
	twice := append(marshal(t, with(2, 9)[:6]), 0x82, 0xa1, 'k', 0xa1, 'a', 0xa1, 'k', 0xa1, 'b')
	twice[0] = 0x97
	id := func(p Package) any { return p.ID }
	for name, c := range map[string]struct {
		body []byte
		part func(Package) any
		want any
	}{
		"six elements": {marshal(t, with(2, 9)[:6]), id, uint64(9)},
		"unknown elements behind the eighth": {
			marshal(t, append(with(2, 9), "x", map[string]int{"y": 1})),
			func(p Package) any { return string(p.Task) }, "task",
		},
		"id in a signed encoding":   {marshal(t, with(2, int64(1<<40))), id, uint64(1 << 40)},
		"id in 16 bits":             {marshal(t, with(2, uint16(9))), id, uint64(9)},
		"expire in an unsigned one": {marshal(t, with(3, uint64(1<<40))), expireOf, int64(1 << 40)},
		"expire of -5 in 8 bits":    {marshal(t, with(3, int8(-5))), expireOf, int64(-5)},
		"version in 32 bits":        {marshal(t, with(0, int32(1))), func(p Package) any { return p.Type }, Sync},
		"async alone": {
			marshal(t, with(1, 5)),
			func(p Package) any { return []any{p.Type, p.Alone} }, []any{Async, true},
		},
		"empty meta": {
			marshal(t, with(6, map[string]string{})),
			func(p Package) any { return p.Meta }, map[string]string(nil),
		},
		"limits in other encodings": {
			marshal(t, with(7, []any{uint8(200), int64(300)})),
			func(p Package) any { return p.Hard }, 300 * time.Nanosecond,
		},
		"payload that is a number": {
			marshal(t, with(5, 1.5)),
			func(p Package) any { return p.Payload }, marshal(t, 1.5),
		},
		"array header of 32 bits":    {append([]byte{0xdd, 0, 0, 0, 6}, marshal(t, with(2, 9)[:6])[1:]...), id, uint64(9)},
		"one meta key with 2 values": {twice, func(p Package) any { return p.Meta }, map[string]string{"k": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := ParsePackage(c.body)
			require.NoError(t, err)
			assert.Equal(t, c.want, c.part(p))
		})
	}
}

func expireOf(p Package) any { return p.Expire }

func TestParsePackageRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body []byte
		id   uint64
		says string
	}{
		"an empty body":             {nil, 0, "package is empty"},
		"a map":                     {marshal(t, map[string]int{"version": 1}), 0, "0x81"},
		"five elements":             {marshal(t, with(2, 7)[:5]), 0, "5 elements, 6 are needed"},
		"version 2":                 {marshal(t, with(0, 2)), 7, "version is 2, this side speaks 1"},
		"a version in words":        {marshal(t, with(0, "one")), 7, `version is the str "one"`},
		"type 3":                    {marshal(t, with(1, 3)), 7, "package type is 3"},
		"type 0":                    {marshal(t, with(1, 0)), 7, "package type is 0"},
		"type 4":                    {marshal(t, with(1, 4)), 7, "package type is 0"},
		"type 10":                   {marshal(t, with(1, 10)), 7, "package type is 10"},
		"id 0":                      {marshal(t, with(2, 0)), 0, "id is 0"},
		"a negative id":             {marshal(t, with(2, -7)), 0, "package id is -7"},
		"an id that is a fraction":  {marshal(t, with(2, 1.5)), 0, "package id is of kind float"},
		"expire over 63 bits":       {marshal(t, with(3, uint64(1<<63))), 7, "package expire is 9223372036854775808"},
		"expire nil":                {marshal(t, with(3, nil)), 7, "package expire is of kind nil"},
		"a task of bytes":           {marshal(t, with(4, []byte("task"))), 7, "package task"},
		"meta that is a list":       {marshal(t, with(6, []int{1})), 7, "package meta"},
		"meta with a number":        {marshal(t, with(6, map[string]int{"a": 4})), 7, "4, it must be a str"},
		"meta with a number as key": {marshal(t, with(6, map[int]string{4: "a"})), 7, "4, it must be a str"},
		"meta of 129 pairs":         {marshal(t, with(6, manyPairs(129))), 7, "129 pairs, at most 128"},
		"one limit":                 {marshal(t, with(7, []int{1})), 7, "package limits"},
		"three limits":              {marshal(t, with(7, []int{1, 2, 3})), 7, "package limits"},
		"a negative limit":          {marshal(t, with(7, []int{1, -2})), 7, "hard limit is -2 ns"},
		"soft not below hard": {marshal(t, with(7, []int{2, 2})), 7,
			"soft limit is 2 ns, it must be below the hard limit, 2 ns"},
		"a limit in words":         {marshal(t, with(7, []string{"1s", "2s"})), 7, "soft limit"},
		"bytes behind it":          {append(marshal(t, with(2, 7)), 0xc0), 7, "1 bytes follow"},
		"a payload cut short":      {append(marshal(t, with(2, 7)[:6])[:10], 0xc6, 0, 0, 0, 9), 7, "cut short"},
		"0xc1 behind the eighth":   {append([]byte{0x99}, append(marshal(t, with(2, 7))[1:], 0xc1)...), 7, "reserved"},
		"64 levels in the payload": {append(marshal(t, with(2, 7)[:5])[:10], nested(64)...), 7, "deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "payload") {
				c.body[0] = 0x96
			}
			_, err := ParsePackage(c.body)
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, StatusIllegal, e.Status)
			assert.Equal(t, c.id, e.ID)
			assert.Contains(t, e.Text, c.says)
		})
	}
}

func TestFieldsOfFixedWidthChangeInPlace(t *testing.T) {
	t.Parallel()
	p := Package{Type: Sync, ID: 1, Task: []byte("t"), Payload: []byte{0xc0}}
	frame := appendPackage(BeginFrame(nil), &p)
	require.NoError(t, EndFrame(frame, DefaultPackageSize))
	length := binary.BigEndian.Uint32(frame)

	SetID(frame, math.MaxUint64)
	SetType(frame, Async|Alone)
	got, err := ParsePackage(frame[HeaderSize:])
	require.NoError(t, err)
	assert.Equal(t, Package{Type: Async, Alone: true, ID: math.MaxUint64, Task: []byte("t"), Payload: []byte{0xc0}}, got)
	assert.Equal(t, length, binary.BigEndian.Uint32(frame))
}

func TestMetaCostsNoMoreThanFourTimesItsBytes_Row71(t *testing.T) {
	pairs := append([]byte{0x97}, marshal(t, with(2, 7)[:6])[1:]...)
	pairs = append(pairs, 0xdf, 0, 8, 0, 0)
	for i := range 1 << 19 {
		pairs = append(pairs, 0xa3, byte(i), byte(i>>8), byte(i>>16), 0xa0)
	}
	var err error
	bytes := allocated(func() { _, err = ParsePackage(pairs) })
	assert.ErrorIs(t, err, StatusIllegal)
	assert.LessOrEqual(t, bytes, uint64(4*len(pairs)+slack))
}

func TestParsingWithoutMetaAllocatesNothing(t *testing.T) {
	body := appendPackage(nil, &Package{Type: Sync, ID: 1, Task: []byte("t"), Payload: []byte{0xc0}, Hard: time.Second})
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := ParsePackage(body); err != nil {
			t.Error(err)
		}
	}))
}
