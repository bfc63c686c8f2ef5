package codec

import (
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// Types that decode themselves, in each of the ways that the library knows.
type (
	custom struct{ n int }
	marsh  struct{ s string }
	hooked struct {
		Big  big.Int
		Ptr  *big.Int
		URL  url.URL
		C    custom
		M    map[string]marsh
		Raw  msgpack.RawMessage
		None *custom
	}
)

func (c *custom) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeInt(int64(c.n) + 1) }
func (c *custom) DecodeMsgpack(d *msgpack.Decoder) error {
	n, err := d.DecodeInt()
	c.n = n - 1
	return err
}
func (m marsh) MarshalMsgpack() ([]byte, error) {
	return append([]byte{0xa0 | byte(len(m.s))}, m.s...), nil
}
func (m *marsh) UnmarshalMsgpack(b []byte) error {
	m.s = string(b[1:])
	return nil
}

func TestTypesThatEncodeThemselves(t *testing.T) {
	t.Parallel()
	u, err := url.Parse("https://example.org/x")
	require.NoError(t, err)
	in := hooked{
		Big: *big.NewInt(1 << 40), Ptr: big.NewInt(-5), URL: *u, C: custom{41},
		M: map[string]marsh{"k": {"v"}}, Raw: msgpack.RawMessage{0x92, 1, 2},
	}
	for name, v := range map[string]any{"by value": in, "by pointer": &in} {
		t.Run(name, func(t *testing.T) {
			b, err := Append(nil, v)
			require.NoError(t, err)
			var out hooked
			require.NoError(t, Decode(b, &out))
			assert.Equal(t, in, out)
		})
	}
}

func TestDecodeRefusesWhatItCannotFill(t *testing.T) {
	t.Parallel()
	assert.ErrorContains(t, Decode([]byte{1}, nil), "not a pointer")
	assert.ErrorContains(t, Decode([]byte{1}, 5), "not a pointer")
	assert.ErrorContains(t, Decode([]byte{1}, (*int)(nil)), "not a pointer")
	assert.ErrorContains(t, Decode(nil, new(int)), "not a msgpack value")
	assert.ErrorContains(t, Decode([]byte{1, 2}, new(int)), "1 bytes follow")
	_, err := Value([]byte{1, 2})
	assert.ErrorContains(t, err, "1 bytes follow")
	assert.ErrorContains(t, Decode([]byte{1}, new(fmt.Stringer)), "does not fit the interface fmt.Stringer")
}

type panicker struct{ N int }

func (panicker) EncodeMsgpack(*msgpack.Encoder) error  { panic("encoder broke") }
func (*panicker) DecodeMsgpack(*msgpack.Decoder) error { panic("decoder broke") }

func TestAPanicOfATypesOwnDecoderIsAnError(t *testing.T) {
	t.Parallel()
	assert.EqualError(t, Decode([]byte{1}, new(panicker)), "decode into *codec.panicker: panic: decoder broke")
	_, err := Append(nil, panicker{})
	assert.EqualError(t, err, "encode codec.panicker: panic: encoder broke")
}

func TestLongValuesAreCutInErrors(t *testing.T) {
	t.Parallel()
	_, err := decodeInto[int](t, strings.Repeat("x", 1000))
	assert.Less(t, len(err.Error()), 120)
}

// mapper reads a map with the library.
type mapper struct{ M map[string]any }

func (m *mapper) DecodeMsgpack(d *msgpack.Decoder) (err error) {
	m.M, err = d.DecodeMap()
	return err
}

// Row 71: the library looks for a map's length inside an extension, whose content no walk has
// checked.
func TestAnExtensionIsNotReadAsAMap_Row71(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"a map of 4 Gi in an extension":       {0xd7, 5, 0xdf, 0xff, 0xff, 0xff, 0xff, 0, 0, 0},
		"a map of 4 Gi in a time":             {0xd7, 0xff, 0xdf, 0xff, 0xff, 0xff, 0xff, 0, 0, 0},
		"a map that holds one of 4 Gi":        {0xd7, 0xff, 0x81, 0xa0, 0xdf, 0xff, 0xff, 0xff, 0xff, 0},
		"an extension of nothing, then a map": {0xc7, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			for _, into := range []any{new(mapper), new(map[string]int), new(map[string]any), new(map[int]string),
				new(order), new([]int), new(int), new(string)} {
				assert.Error(t, Decode(b, into), "%T", into)
			}
		})
	}
}

func TestATimeInsideATypesOwnDecoderIsRead(t *testing.T) {
	t.Parallel()
	at := time.Unix(1<<31, 600_000_000)
	var m mapper
	require.NoError(t, Decode(marshal(t, map[string]any{"at": at, "then": 5}), &m))
	assert.Equal(t, map[string]any{"at": at, "then": int8(5)}, m.M)
}
