package codec

import (
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/internal/raw"
)

type address struct {
	Street string
	No     uint16
}

type Base struct {
	ID   uint64
	Kind string
}

type order struct {
	Base
	Name    string `msgpack:"name"`
	Count   int8
	Price   float64
	Data    []byte
	Tags    []string
	To      *address
	Lines   []address
	Extra   any
	ByNo    map[int]string
	Free    map[string]any
	At      time.Time
	Wait    time.Duration
	Sum     [4]byte
	Hidden  int `msgpack:"-"`
	Nothing *int
}

func sampleOrder() order {
	return order{
		Base: Base{ID: math.MaxUint64, Kind: "k"}, Name: "n", Count: -7, Price: 1.5, Data: []byte{1,
			2}, Tags: []string{"a", ""},
		To: &address{"s", 5}, Lines: []address{{"t", 1}, {"u", math.MaxUint16}},
		Extra: map[string]any{"x": []any{int64(-2), uint64(math.MaxUint64), "s", nil, 1.25, true, []byte{3}}},
		ByNo:  map[int]string{-1: "minus", 300: "more"}, Free: map[string]any{"n": int64(200)},
		At: time.Unix(1700000000, 123456789), Wait: time.Second, Sum: [4]byte{1, 2, 3, 4},
	}
}

func TestAStructComesBackAsItWent(t *testing.T) {
	t.Parallel()
	in := sampleOrder()
	b, err := Append([]byte("head"), &in)
	require.NoError(t, err)
	assert.Equal(t, "head", string(b[:4]))
	var out order
	require.NoError(t, Decode(b[4:], &out))
	assert.Equal(t, in, out)
}

// newOf returns a new zero value of what v points at.
func newOf(v any) any { return reflect.New(reflect.TypeOf(v).Elem()).Interface() }

// kinds are types that together have every kind that can be encoded.
type kinds struct {
	B    bool
	I    int
	I8   int8
	I16  int16
	I32  int32
	I64  int64
	U    uint
	U8   uint8
	U16  uint16
	U32  uint32
	U64  uint64
	F32  float32
	F64  float64
	S    string
	Raw  []byte
	Arr  [3]int16
	Sum  [5]byte
	L    []string
	LL   [][]uint32
	M    map[string]string
	MI   map[int16]uint64
	MS   map[string]address
	P    *int64
	PP   **string
	In   address
	List []*address
	Base
}

// Whatever the value, it comes back; and the library, where it converts nothing, reads the same.
func TestAnyValueComesBack(t *testing.T) {
	t.Parallel()
	property := func(in kinds) bool {
		b, err := Append(nil, &in)
		require.NoError(t, err)
		n, fault := raw.Walk(b, 0, raw.MaxDepth)
		require.Equal(t, raw.Sound, fault)
		require.Equal(t, len(b), n)
		var ours, theirs kinds
		require.NoError(t, Decode(b, &ours))
		require.NoError(t, msgpack.Unmarshal(b, &theirs))
		return assert.Equal(t, in, ours) && assert.Equal(t, theirs, ours)
	}
	require.NoError(t, quick.Check(property, &quick.Config{MaxCount: 50}))
}

func TestCodecIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	in := sampleOrder()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				b, err := Append(nil, &in)
				assert.NoError(t, err)
				var out order
				assert.NoError(t, Decode(b, &out))
				assert.Equal(t, in, out)
			}
		})
	}
	group.Wait()
}

// Decode decodes or refuses what passes the walk, into any type, without a panic.
func FuzzDecode(f *testing.F) {
	in := sampleOrder()
	b, err := Append(nil, &in)
	require.NoError(f, err)
	for _, seed := range [][]byte{b, {0xc0}, {0x81, 0x90, 1}, {0xd6, 0xff, 0, 0, 0, 1}, {0xc7, 12, 0xff, 255, 255,
		255, 255, 0, 0, 0, 0, 0, 0, 0, 0}, {0xd4, 0x80, 0}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, fault := raw.Walk(b, 0, raw.MaxDepth)
		if fault != raw.Sound {
			return
		}
		b = b[:n]
		calm := func(err error) {
			if err != nil {
				assert.NotContains(t, err.Error(), "panic")
			}
		}
		v, err := Value(b)
		calm(err)
		if err == nil {
			again, err := Append(nil, v)
			require.NoError(t, err)
			v2, err := Value(again)
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint(v), fmt.Sprint(v2))
		}
		for _, into := range []any{new(order), new(kinds), new(any), new(map[any]any), new([]map[string]time.Time),
			new(hooked), new(node), new(error), new(asArray), new(mapper), new([]mapper)} {
			calm(Decode(b, into))
		}
	})
}

func BenchmarkStructOf200Bytes(b *testing.B) {
	type job struct {
		ID    uint64
		Name  string
		Queue string
		Tries int
		Delay time.Duration
		Body  []byte
		Tags  []string
	}
	in := job{1 << 40, "send the newsletter", "default", 3, time.Minute, make([]byte, 100), []string{"mail", "bulk"}}
	encoded, err := Append(nil, &in)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		buf := make([]byte, 0, 512)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Append(buf, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var out job
			if err := Decode(encoded, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("value", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Value(encoded); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode by the library alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var out job
			if err := msgpack.Unmarshal(encoded, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
}
