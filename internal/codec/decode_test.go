package codec

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// marshal encodes v with the library's defaults, as another client might.
func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(v)
	require.NoError(t, err)
	return b
}

// decodeInto encodes in and decodes that into a new T.
func decodeInto[T any](t testing.TB, in any) (T, error) {
	var out T
	err := Decode(marshal(t, in), &out)
	return out, err
}

func refuses[T any](in any, says string) func(*testing.T) {
	return func(t *testing.T) {
		got, err := decodeInto[T](t, in)
		require.Error(t, err, "decoded as %v", got)
		assert.Contains(t, err.Error(), says)
	}
}

func accepts[T any](in any, want T) func(*testing.T) {
	return func(t *testing.T) {
		got, err := decodeInto[T](t, in)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

func TestNumbersThatDoNotFitAreErrors(t *testing.T) {
	t.Parallel()
	t.Run("300 into int8", refuses[int8](300, "300 does not fit int8"))
	t.Run("128 into int8", refuses[int8](128, "128 does not fit int8"))
	t.Run("-129 into int8", refuses[int8](-129, "-129 does not fit int8"))
	t.Run("-1 into uint", refuses[uint](-1, "-1 does not fit uint"))
	t.Run("256 into uint8", refuses[uint8](256, "256 does not fit uint8"))
	t.Run("largest uint64 into int", refuses[int](uint64(math.MaxUint64), "18446744073709551615 does not fit int"))
	t.Run("2^63 into int64", refuses[int64](uint64(1<<63), "9223372036854775808 does not fit int64"))
	t.Run("a fraction into int", refuses[int](1.5, "1.5 does not fit int"))
	t.Run("a whole float into int", refuses[int](2.0, "2 does not fit int"))
	t.Run("a number into a string", refuses[string](5, "5 does not fit string"))
	t.Run("a string into a number", refuses[int]("5", `string "5" does not fit int`))
	t.Run("a number into a bool", refuses[bool](1, "1 does not fit bool"))
	t.Run("a bool into a number", refuses[int](true, "true does not fit int"))
	t.Run("a bool into a float", refuses[float64](true, "true does not fit float64"))
	t.Run("a large integer into float64", refuses[float64](int64(1<<53+1), "9007199254740993 does not fit float64"))
	t.Run("the largest uint64 into float64", refuses[float64](uint64(math.MaxUint64), "does not fit float64"))
	t.Run("a large integer into float32", refuses[float32](1<<24+1, "16777217 does not fit float32"))
	t.Run("a large float into float32", refuses[float32](1e300, "1e+300 does not fit float32"))
	t.Run("a number into a duration", refuses[time.Duration]("1s", `string "1s" does not fit time.Duration`))
	t.Run("a map into a slice", refuses[[]int](map[string]int{"a": 1}, "map of length 1 does not fit []int"))
	t.Run("a slice into a map", refuses[map[string]int]([]int{1}, "array of length 1 does not fit map"))
	t.Run("a string into a struct", refuses[address]("x", `string "x" does not fit codec.address`))
	t.Run("numbers into bytes", refuses[[]byte]([]int{1}, "array of length 1 does not fit []uint8"))
	t.Run("bytes into numbers", refuses[[]int]([]byte{1}, "bytes of length 1 does not fit []int"))
	t.Run("three into an array of two", refuses[[2]int]([]int{1, 2, 3}, "3 elements do not fit [2]int"))
	t.Run("five bytes into four", refuses[[4]byte]([]byte("12345"), "5 elements do not fit [4]uint8"))
	t.Run("anything into a channel", refuses[chan int](1, "does not fit chan int"))
}

func TestNumbersThatFitAreKept(t *testing.T) {
	t.Parallel()
	t.Run("127 into int8", accepts(127, int8(127)))
	t.Run("-128 in 64 bits into int8", accepts(int64(-128), int8(-128)))
	t.Run("unsigned into int64", accepts(uint64(math.MaxInt64), int64(math.MaxInt64)))
	t.Run("smallest int64", accepts(int64(math.MinInt64), int64(math.MinInt64)))
	t.Run("largest uint64", accepts(uint64(math.MaxUint64), uint64(math.MaxUint64)))
	t.Run("signed into uint8", accepts(int64(255), uint8(255)))
	t.Run("an integer into float64", accepts(-7, float64(-7)))
	t.Run("smallest int64 into float64", accepts(int64(math.MinInt64), float64(math.MinInt64)))
	t.Run("2^63 into float64", accepts(uint64(1<<63), float64(1<<63)))
	t.Run("float32 into float64", accepts(float32(1.5), 1.5))
	t.Run("float64 into float32", accepts(0.1, float32(0.1)))
	t.Run("infinity into float32", accepts(math.Inf(-1), float32(math.Inf(-1))))
	t.Run("a string into bytes", accepts("ab", []byte("ab")))
	t.Run("bytes into a string", accepts([]byte("ab"), "ab"))
	t.Run("two into an array of three", accepts([]int{1, 2}, [3]int{1, 2, 0}))
	t.Run("a duration", accepts(time.Hour, time.Hour))
}

func TestNilIsTheZeroValue(t *testing.T) {
	t.Parallel()
	t.Run("int", accepts(nil, 0))
	t.Run("string", accepts(nil, ""))
	t.Run("slice", accepts(nil, []int(nil)))
	t.Run("map", accepts(nil, map[string]int(nil)))
	t.Run("pointer", accepts(nil, (*int)(nil)))
	t.Run("struct", accepts(nil, address{}))
	t.Run("array", accepts(nil, [2]int{}))
	t.Run("time", accepts(nil, time.Time{}))
	t.Run("interface", accepts[any](nil, nil))
	t.Run("fields", accepts(map[string]any{"Street": nil, "No": nil}, address{}))

	full := address{"s", 5}
	require.NoError(t, Decode(marshal(t, nil), &full))
	assert.Equal(t, address{}, full)
}

func TestErrorsSayWhere(t *testing.T) {
	t.Parallel()
	type line struct{ Count int8 }
	type doc struct {
		Items []line
		ByID  map[string]*line
		Deep  [][]map[int]uint8
		Any   any
	}
	for name, c := range map[string]struct {
		in   any
		says string
	}{
		"a field in a slice": {map[string]any{"Items": []any{map[string]any{"Count": 1},
			map[string]any{"Count": 300}}}, "Items[1].Count: 300 does not fit int8"},
		"a field in a map": {map[string]any{"ByID": map[string]any{"x": map[string]any{"Count": "no"}}},
			`ByID[x].Count: string "no" does not fit int8`},
		"deep": {map[string]any{"Deep": []any{[]any{map[int]int{7: -1}}}},
			"Deep[0][0][7]: -1 does not fit uint8"},
		"a key": {map[string]any{"Deep": []any{[]any{map[string]int{"k": 1}}}},
			`Deep[0][0][key]: string "k" does not fit int`},
		"a name that is none": {map[int]int{1: 2}, "a field of codec.doc is named by integer, not by a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeInto[doc](t, c.in)
			assert.EqualError(t, err, "decode into *codec.doc: "+c.says)
		})
	}
}

func TestInterfacesHoldWideNumbers(t *testing.T) {
	t.Parallel()
	in := map[string]any{
		"small": 5, "minus": -2, "int8": int8(-100), "uint16": uint16(60000), "uint64": uint64(7),
		"huge":    uint64(math.MaxUint64),
		"float32": float32(1.5), "list": []any{1, []int{2}, []byte{3}}, "map": map[int]string{4: "x"}, "nil": nil, "s": "s",
	}
	want := map[string]any{
		"small": int64(5), "minus": int64(-2), "int8": int64(-100), "uint16": int64(60000), "uint64": int64(7),
		"huge":    uint64(math.MaxUint64),
		"float32": 1.5, "list": []any{int64(1), []any{int64(2)}, []byte{3}},
		"map": map[any]any{int64(4): "x"}, "nil": nil, "s": "s",
	}
	got, err := Value(marshal(t, in))
	require.NoError(t, err)
	assert.Equal(t, want, got)

	type holder struct {
		Any   any
		Free  map[string]any
		List  []any
		Keyed map[any]any
		Ptr   *any
	}
	var inner any = int64(5)
	t.Run("in a struct", accepts(map[string]any{"Any": in, "Free": in, "List": []any{in},
		"Keyed": map[any]any{int8(1): in}, "Ptr": 5},
		holder{Any: want, Free: want, List: []any{want}, Keyed: map[any]any{int64(1): want}, Ptr: &inner}))
}

func TestValueOfMixedKeys(t *testing.T) {
	t.Parallel()
	raw := []byte{0x83, 0xa1, 'a', 1, 2, 0xa1, 'b', 0xa1, 'c', 3}
	got, err := Value(raw)
	require.NoError(t, err)
	assert.Equal(t, map[any]any{"a": int64(1), int64(2): "b", "c": int64(3)}, got)

	_, err = Value([]byte{0x81, 0x90, 1})
	assert.EqualError(t, err, "decode: []interface {} cannot be the key of a map")
	assert.Error(t, Decode([]byte{0x81, 0x90, 1}, new(map[any]int)))
}

func TestValueNamesUnknownExtensions(t *testing.T) {
	t.Parallel()
	_, err := Value([]byte{0xd4, 99, 0})
	assert.ErrorContains(t, err, "ext id=99")
}

func TestMapsWithKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	t.Run("int keys", accepts(map[int]string{-1: "a", 300: "b"}, map[int]string{-1: "a", 300: "b"}))
	t.Run("narrow keys", accepts(map[int64]string{5: "a"}, map[uint8]string{5: "a"}))
	t.Run("a key that does not fit", refuses[map[uint8]string](map[int]string{300: "a"}, "300 does not fit uint8"))
	t.Run("pointers as values", func(t *testing.T) {
		one, two := 1, 2
		accepts(map[string]int{"a": 1, "b": 2}, map[string]*int{"a": &one, "b": &two})(t)
	})

	t.Run("structs as keys", func(t *testing.T) {
		var out map[inner]int
		require.NoError(t, Decode([]byte{0x82, 0x81, 0xa1, 'A', 1, 10, 0x81, 0xa1, 'B', 2, 20}, &out))
		assert.Equal(t, map[inner]int{{A: 1}: 10, {B: 2}: 20}, out)
	})

	m := map[string]int{"kept": 1, "new": 0}
	require.NoError(t, Decode(marshal(t, map[string]int{"new": 2}), &m))
	assert.Equal(t, map[string]int{"kept": 1, "new": 2}, m)
}

func TestDecodeDoesNotTouchWhatACallerHolds(t *testing.T) {
	t.Parallel()
	raw := marshal(t, []byte("abc"))
	var b []byte
	require.NoError(t, Decode(raw, &b))
	raw[len(raw)-1] = 'X'
	assert.Equal(t, "abc", string(b))

	old := []int{1, 2, 3}
	list := old[:1]
	require.NoError(t, Decode(marshal(t, []int{7, 8}), &list))
	assert.Equal(t, []int{7, 8}, list)
	assert.Equal(t, []int{1, 2, 3}, old)
}

func TestDecodeFollowsAPointerInAnInterface(t *testing.T) {
	t.Parallel()
	target := &address{Street: "old", No: 5}
	var v any = target
	require.NoError(t, Decode(marshal(t, map[string]any{"Street": "new"}), &v))
	assert.Equal(t, &address{"new", 5}, target)
	assert.Same(t, target, v)
}

func TestAnErrorTravelsAsItsText(t *testing.T) {
	t.Parallel()
	type outcome struct{ Err error }
	b, err := Append(nil, outcome{fmt.Errorf("boom")})
	require.NoError(t, err)
	var out outcome
	require.NoError(t, Decode(b, &out))
	assert.EqualError(t, out.Err, "boom")
	assert.ErrorContains(t, Decode(marshal(t, map[string]int{"Err": 5}), &out), "does not fit the interface error")
}

func TestTimesKeepTheirInstant(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("somewhere", 5*3600)
	for _, in := range []time.Time{
		time.Now(), time.Unix(0, 0), time.Unix(1<<34, 5), time.Unix(-1, 999), time.Date(2026, 2, 3, 4, 5, 6, 7, zone), {},
	} {
		b, err := Append(nil, in)
		require.NoError(t, err)
		var out time.Time
		require.NoError(t, Decode(b, &out))
		assert.True(t, in.Equal(out), "%v came back as %v", in, out)

		v, err := Value(b)
		require.NoError(t, err)
		assert.True(t, in.Equal(v.(time.Time)))
	}
	assert.ErrorContains(t, Decode(marshal(t, 5), new(time.Time)), "decode into *time.Time")
}

func TestBytesOfManySizes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 255, 256, 65536, 3 << 20} {
		in := bytes.Repeat([]byte{7}, n)
		b, err := Append(nil, in)
		require.NoError(t, err)
		var out []byte
		require.NoError(t, Decode(b, &out))
		assert.True(t, bytes.Equal(in, out))
		assert.NotNil(t, out)
	}
}

func TestOnlyLargeBytesShareMemory(t *testing.T) {
	t.Parallel()
	for size, shared := range map[int]bool{Large - 1: false, Large: true, 1 << 20: true} {
		b := marshal(t, struct{ Data, Next []byte }{make([]byte, size), []byte("next")})
		before := bytes.Clone(b)
		var out struct{ Data, Next []byte }
		require.NoError(t, Decode(b, &out))
		out.Data[0] = 1
		assert.Equal(t, shared, !bytes.Equal(before, b), "%d bytes", size)
		out.Data = append(out.Data, "more"...)
		assert.Equal(t, "next", string(out.Next))
	}
}
