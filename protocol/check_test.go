package protocol

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// nested returns n arrays in each other, the innermost empty.
func nested(n int) []byte {
	return append(bytes.Repeat([]byte{0x91}, n-1), 0x90)
}

func TestCheckAcceptsEveryKindOfValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70_000)
	for name, v := range map[string]any{
		"nil":            nil,
		"bool":           true,
		"small numbers":  []int{0, 127, -1, -32},
		"all integers":   []any{uint8(200), uint16(1), uint32(1), uint64(1), int8(-100), int16(-1), int32(-1), int64(-1)},
		"floats":         []any{float32(1.5), 1.5},
		"strings":        []string{"", "a", long[:40], long[:300], long},
		"bytes":          [][]byte{{}, []byte(long[:40]), []byte(long[:300]), []byte(long)},
		"long array":     make([]int, 20),
		"longer array":   make([]int, 70_000),
		"map":            map[string]any{"a": map[string]int{"b": 1}, "c": []int{1, 2}},
		"map of numbers": map[int]int{1: 2},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := msgpack.Marshal(v)
			require.NoError(t, err)
			n, err := Check(append(raw, 0xc1, 0xc1))
			require.NoError(t, err)
			assert.Equal(t, len(raw), n)

			for _, cut := range []int{0, 1, len(raw) / 2, len(raw) - 1} {
				if cut < len(raw) {
					_, err = Check(raw[:cut])
					assert.ErrorIs(t, err, StatusIllegal, "cut after %d of %d bytes", cut, len(raw))
				}
			}
		})
	}
}

func TestCheckAcceptsExtensionsOfEveryLength(t *testing.T) {
	t.Parallel()
	for name, head := range map[string][]byte{
		"fixext 1": {0xd4, 5}, "fixext 2": {0xd5, 5}, "fixext 4": {0xd6, 5}, "fixext 8": {0xd7, 5}, "fixext 16": {0xd8, 5},
		"ext 8": {0xc7, 3, 5}, "ext 16": {0xc8, 0, 3, 5}, "ext 32": {0xc9, 0, 0, 0, 3, 5}, "ext 8 of nothing": {0xc7, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			content := map[string]int{"fixext 1": 1, "fixext 2": 2, "fixext 4": 4, "fixext 8": 8, "fixext 16": 16,
				"ext 8 of nothing": 0}
			size, ok := content[name]
			if !ok {
				size = 3
			}
			raw := append(head, make([]byte, size)...)
			n, err := Check(raw)
			require.NoError(t, err)
			assert.Equal(t, len(raw), n)
			_, err = Check(raw[:len(raw)-1])
			assert.ErrorIs(t, err, StatusIllegal)
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raw  []byte
		says string
	}{
		"nothing":                       {nil, "cut short"},
		"the reserved code":             {[]byte{0xc1}, "reserved"},
		"the reserved code deep inside": {[]byte{0x92, 0x01, 0x81, 0xa1, 'a', 0xc1}, "reserved"},
		"an array of more elements":     {[]byte{0xdc, 0xff, 0xff, 1, 2}, "claims more"},
		"a map of more pairs":           {[]byte{0x82, 1, 2, 3}, "claims more"},
		"claims that only fit alone":    {[]byte{0x92, 0x92, 1, 2}, "claims more"},
		"a str of more bytes":           {[]byte{0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}, "cut short"},
		"a bin of more bytes":           {[]byte{0xc6, 0xff, 0xff, 0xff, 0xff, 'a'}, "cut short"},
		"an ext of more bytes":          {[]byte{0xc9, 0xff, 0xff, 0xff, 0xff, 5, 'a'}, "cut short"},
		"a header cut short":            {[]byte{0xdd, 0, 0}, "cut short"},
		"65 levels":                     {nested(65), "deeper"},
		"65 levels of maps":             {append(bytes.Repeat([]byte{0x81, 0x01}, 64), 0x80), "deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Check(c.raw)
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, StatusIllegal, e.Status)
			assert.Contains(t, e.Text, c.says)
		})
	}
}

func TestCheckAcceptsNestingUpToTheLimit(t *testing.T) {
	t.Parallel()
	n, err := Check(nested(MaxDepth))
	require.NoError(t, err)
	assert.Equal(t, MaxDepth, n)
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// slack is the constant in "four times the input and a constant".
const slack = 64 << 10

// Row 71: a 5-byte header that claims 64 Mi elements, 1.9 MB of nested arrays: no allocation of
// more than 4x the frame, no fatal exit, -4.
func TestHostileBodiesAreRefusedCheaply_Row71(t *testing.T) {
	claim := func(code byte) []byte { return binary.BigEndian.AppendUint32([]byte{code}, 64<<20) }
	inPackage := func(payload []byte) []byte {
		p := &Package{Type: Sync, ID: 7, Task: []byte("t")}
		return append(AppendHead(nil, p), payload...)
	}
	for name, body := range map[string][]byte{
		"array of 64 Mi":                     claim(0xdd),
		"map of 64 Mi":                       claim(0xdf),
		"str of 64 Mi":                       claim(0xdb),
		"bin of 64 Mi":                       claim(0xc6),
		"ext of 64 Mi":                       claim(0xc9),
		"nested arrays of 1.9 MB":            nested(1_900_000),
		"nested maps of 1.9 MB":              bytes.Repeat([]byte{0x81}, 1_900_000),
		"array of 64 Mi in a package":        inPackage(claim(0xdd)),
		"nested arrays of 1.9 MB in package": inPackage(nested(1_900_000)),
	} {
		t.Run(name, func(t *testing.T) {
			var checkErr, packageErr, responseErr error
			bytes := allocated(func() {
				_, checkErr = Check(body)
				_, packageErr = ParsePackage(body)
				_, responseErr = ParseResponse(body)
			})
			if !strings.Contains(name, "package") {
				assert.ErrorIs(t, checkErr, StatusIllegal)
			}
			assert.ErrorIs(t, packageErr, StatusIllegal)
			assert.ErrorIs(t, responseErr, StatusProtocol)
			assert.LessOrEqual(t, bytes, uint64(4*len(body)+slack))
		})
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	raw, err := msgpack.Marshal(map[string]any{"a": []int{1, 2, 3}, "b": map[string]string{"c": "d"}})
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = Check(raw) }))
}
