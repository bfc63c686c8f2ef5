package raw

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIntegersComeBackFromTheirShortestForm(t *testing.T) {
	t.Parallel()
	for n, size := range map[int64]int{
		0: 1, 127: 1, 128: 2, 255: 2, 256: 3, 65535: 3, 65536: 5, math.MaxUint32: 5, math.MaxUint32 + 1: 9,
		math.MaxInt64: 9, -1: 1, -32: 1, -33: 2, -128: 2, -129: 3, -32768: 3, -32769: 5, math.MinInt32: 5,
		math.MinInt32 - 1: 9, math.MinInt64: 9,
	} {
		b := AppendInt(nil, n)
		token, next := Next(b, 0)
		got, ok := token.Int64()
		require.True(t, ok, n)
		assert.Equal(t, n, got)
		assert.Equal(t, size, len(b), n)
		assert.Equal(t, size, next, n)
	}
	token, _ := Next(AppendUint(nil, math.MaxUint64), 0)
	assert.Equal(t, Token{Kind: Uint, Bits: math.MaxUint64}, token)
	_, ok := token.Int64()
	assert.False(t, ok)
}

func TestTextsAndBytesComeBackAtTheSizesOfTheirHeads(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 31, 32, 255, 256, 65535, 65536} {
		s := strings.Repeat("x", n)
		for kind, b := range map[Kind][]byte{Str: AppendStr(nil, s), Bin: AppendBin(nil, []byte(s))} {
			token, next := Next(b, 0)
			assert.Equal(t, Token{Kind: kind, Len: n}, token)
			assert.Equal(t, len(b), next)
			assert.Equal(t, s, string(b[next-token.Len:]))
			cut, _ := Next(b[:len(b)-1], 0)
			assert.Equal(t, Cut, cut.Kind, "%s of %d", kind, n)
		}
	}
}

func TestWalkNamesTheFault(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return append([]byte(strings.Repeat("\x91", n)), CodeNil) }
	for _, tt := range []struct {
		name  string
		b     []byte
		fault Fault
	}{
		{"a scalar", AppendBool(nil, true), Sound},
		{"a map", AppendStr(AppendStr(AppendMapHead(nil, 1), "k"), "v"), Sound},
		{"as deep as allowed", nested(MaxDepth), Sound},
		{"too deep", nested(MaxDepth + 1), TooDeep},
		{"no bytes", nil, CutShort},
		{"cut short", AppendStr(nil, "text")[:3], CutShort},
		{"more elements than bytes", AppendArrayHead(nil, 3), TooMany},
		{"reserved", []byte{0x91, 0xc1}, Unknown},
	} {
		t.Run(fmt.Sprint(tt.name, ": ", tt.fault), func(t *testing.T) {
			t.Parallel()
			end, fault := Walk(tt.b, 0, MaxDepth)
			assert.Equal(t, tt.fault, fault)
			if fault == Sound {
				assert.Equal(t, len(tt.b), end)
			}
		})
	}
}
