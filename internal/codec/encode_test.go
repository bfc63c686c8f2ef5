package codec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

type node struct {
	Name string
	Next *node
	Kids []*node
}

type selfPointer *selfPointer

type embedsItself struct {
	*embedsItself
	N int
}

type loose []byte // writes what it holds, msgpack or not

func (l loose) MarshalMsgpack() ([]byte, error) { return l, nil }

func chain(n int) *node {
	var head *node
	for range n {
		head = &node{Next: head}
	}
	return head
}

func TestValuesThatCannotBeEncodedAreErrors(t *testing.T) {
	t.Parallel()
	ring := &node{Name: "ring"}
	ring.Next = ring
	var self any
	self = &self
	list := make([]any, 1)
	list[0] = list
	byName := map[string]any{}
	byName["me"] = byName
	var pointer selfPointer
	pointer = &pointer
	for name, c := range map[string]struct {
		v    any
		says string
	}{
		"a channel":                      {make(chan int), "chan int"},
		"a function":                     {func() {}, "func()"},
		"a complex number":               {1i, "complex128"},
		"a channel in a field":           {struct{ C chan int }{}, "chan int"},
		"a channel in an interface":      {[]any{make(chan int)}, "chan int"},
		"an address":                     {uintptr(1), "encode uintptr"},
		"a ring of pointers":             {ring, "holds itself"},
		"a pointer to itself":            {self, "holds itself"},
		"a slice in itself":              {list, "holds itself"},
		"a map in itself":                {byName, "holds itself"},
		"a chain of 65":                  {chain(65), "nests too deep"},
		"a type that is its own pointer": {pointer, "is only a pointer to itself"},
		"a type that embeds itself":      {embedsItself{embedsItself: nil}, "embeds itself"},
		"interned strings": {struct {
			S string `msgpack:",intern"`
		}{"x"}, "intern is not supported"},
		"an encoder that writes nothing":  {loose{}, "own encoder wrote is cut short"},
		"an encoder that writes too much": {loose{1, 2}, "1 bytes longer than one value"},
		"an encoder that writes 0xc1":     {[]any{loose{0xc1}}, "is reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			dst := []byte("kept")
			out, err := Append(dst, c.v)
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.says)
			assert.Equal(t, "kept", string(out))
		})
	}
}

func TestDeepValuesUpToTheLimitAreEncoded(t *testing.T) {
	t.Parallel()
	b, err := Append(nil, chain(64))
	require.NoError(t, err)
	var out node
	require.NoError(t, Decode(b, &out))
	assert.Equal(t, chain(64), &out)
}

func TestNumbersAreWrittenShort(t *testing.T) {
	t.Parallel()
	b, err := Append(nil, []int64{1, -2, 300})
	require.NoError(t, err)
	assert.Equal(t, []byte{0x93, 1, 0xfe, 0xcd, 1, 0x2c}, b)
}

type (
	inner    struct{ A, B int }
	promoted struct{ B, C int }
	Exported struct{ X int }
	tagged   struct {
		inner
		Renamed string `msgpack:"r,omitempty"`
		Alias   int    `msgpack:"new,alias:old"`
		Skipped int    `msgpack:"-"`
		private int
	}
	shadowing struct {
		B int
		promoted
	}
	inlining struct {
		B        int
		promoted `msgpack:",inline"`
	}
	separate struct {
		Exported `msgpack:",noinline"`
	}
	pointing struct {
		*Exported
		Y int
	}
	asArray struct {
		_msgpack struct{} `msgpack:",as_array"`
		P, Q     int
	}
)

// Decode reads what the library writes by its rules for fields.
func TestFieldsAreNamedAsTheLibraryNamesThem(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"embedded and tagged": &tagged{inner: inner{1, 2}, Renamed: "r", Alias: 3, private: 4},
		"omitted":             &tagged{},
		"shadowed":            &shadowing{B: 1, promoted: promoted{2, 3}},
		"inlined":             &inlining{B: 1, promoted: promoted{C: 3}},
		"not inlined":         &separate{Exported{5}},
		"pointer":             &pointing{&Exported{5}, 6},
		"nil pointer":         &pointing{nil, 6},
		"array":               &asArray{_msgpack: struct{}{}, P: 1, Q: 2},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Append(nil, v)
			require.NoError(t, err)
			ours, theirs := newOf(v), newOf(v)
			require.NoError(t, Decode(b, ours))
			require.NoError(t, msgpack.Unmarshal(b, theirs))
			assert.Equal(t, theirs, ours)
		})
	}
	var out tagged
	require.NoError(t, Decode(marshal(t, map[string]int{"old": 4, "A": 1, "Skipped": 5, "private": 6,
		"unknown": 7}), &out))
	assert.Equal(t, tagged{inner: inner{A: 1}, Alias: 4}, out)

	var hidden shadowing
	require.NoError(t, Decode(marshal(t, map[string]int{"B": 1, "C": 2}), &hidden))
	assert.Equal(t, shadowing{B: 1}, hidden)
}
