package codec

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

type (
	narrow struct {
		Bool    bool
		Int     int
		Int8    int8
		Int16   int16
		Int32   int32
		Int64   int64
		Uint    uint
		Uint8   uint8
		Uint16  uint16
		Uint32  uint32
		Uint64  uint64
		Float32 float32
		Float64 float64
		String  string
		Bytes   []byte
		Letters []letter
		Wait    time.Duration
		Ptr     *int
		Inner   struct{ A string }
		Next    **inner
		Named   string `msgpack:"name"`
		Skipped string `msgpack:"-"`
		private int
	}
	letter byte
)

// appendPlain writes the same bytes as the library.
func TestPlainValuesAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	t.Parallel()
	var values []any
	for _, n := range []int64{
		0, 1, 31, 32, 127, 128, 255, 256, math.MaxInt16, math.MaxUint16, math.MaxUint16 + 1, math.MaxInt32,
		math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64,
		-1, -32, -33, math.MinInt8, math.MinInt8 - 1, math.MinInt16, math.MinInt16 - 1, math.MinInt32,
		math.MinInt32 - 1, math.MinInt64,
	} {
		i, in := int(n), &inner{A: int(n)}
		values = append(values, n, i, int8(n), uint8(n), uint64(n), float32(n), float64(n), n > 0, time.Duration(n),
			&i, narrow{
				n > 0, i, int8(n), int16(n), int32(n), n, uint(n), uint8(n), uint16(n), uint32(n), uint64(n), float32(n),
				float64(n),
				strings.Repeat("s", i&511), make([]byte, i&1023), make([]letter,
					i&1), time.Duration(n), &i, struct{ A string }{"a"}, &in, "named", "skipped", 1,
			})
	}
	values = append(values, nil, narrow{}, &narrow{}, (*narrow)(nil), struct{}{}, []byte(nil), []byte{}, "",
		[]letter(nil), math.NaN(), math.Inf(-1))
	for _, n := range []int{31, 32, 255, 256, Large} {
		values = append(values, strings.Repeat("s", n), make([]byte, n))
	}
	for _, v := range values {
		got, ok := appendPlain([]byte("kept"), v, nil)
		require.True(t, ok, "%T", v)
		assert.Equal(t, append([]byte("kept"), byTheLibrary(t, v)...), got, "%T %v", v, v)
	}
}

func byTheLibrary(t *testing.T, v any) []byte {
	t.Helper()
	var b strings.Builder
	enc := msgpack.NewEncoder(&b)
	enc.UseCompactInts(true)
	require.NoError(t, enc.Encode(v))
	return []byte(b.String())
}

func TestWhatIsNotPlainIsTheLibrarysPart(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"tags":             tagged{},
		"embedded":         shadowing{},
		"an array":         asArray{},
		"its own encoder":  loose{1},
		"a field that has": struct{ L loose }{loose{1}},
		"a time":           time.Now(),
		"an interface":     struct{ V any }{1},
		"itself":           node{},
		"an address":       uintptr(1),
		"a channel":        make(chan int),
	} {
		t.Run(name, func(t *testing.T) {
			out, ok := appendPlain([]byte("kept"), v, nil)
			assert.False(t, ok)
			assert.Equal(t, "kept", string(out))
		})
	}
}
