package codec

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	secret  int
	Nothing *int
}

func sampleOrder() order {
	return order{
		Base: Base{ID: math.MaxUint64, Kind: "k"}, Name: "n", Count: -7, Price: 1.5, Data: []byte{1, 2}, Tags: []string{"a", ""},
		To: &address{"s", 5}, Lines: []address{{"t", 1}, {"u", math.MaxUint16}},
		Extra: map[string]any{"x": []any{int64(-2), uint64(math.MaxUint64), "s", nil, 1.25, true, []byte{3}}},
		ByNo:  map[int]string{-1: "minus", 300: "more"}, Free: map[string]any{"n": int64(200)},
		At: time.Unix(1700000000, 123456789), Wait: time.Second, Sum: [4]byte{1, 2, 3, 4},
	}
}

func TestAStructComesBackAsItWent(t *testing.T) {
	in := sampleOrder()
	b, err := Append([]byte("head"), &in)
	require.NoError(t, err)
	assert.Equal(t, "head", string(b[:4]))
	var out order
	require.NoError(t, Decode(b[4:], &out))
	assert.Equal(t, in, out)
}
