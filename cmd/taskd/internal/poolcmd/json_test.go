package poolcmd

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWholeNumbersKeep64Bits(t *testing.T) {
	v, err := decodeJSON(strings.NewReader(`{"max": 9223372036854775807, "min": -9223372036854775808,
		"list": [18446744073709551615, 9007199254740993], "half": 0.5}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"max": int64(math.MaxInt64), "min": int64(math.MinInt64),
		"list": []any{uint64(math.MaxUint64), int64(9007199254740993)}, "half": 0.5,
	}, v)

	var out bytes.Buffer
	require.NoError(t, encodeJSON(&out, v))
	assert.Equal(t, `{"half":0.5,"list":[18446744073709551615,9007199254740993],`+
		`"max":9223372036854775807,"min":-9223372036854775808}`+"\n", out.String())
}

func TestArgumentsThatAreNotOneJSONValueAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "want a JSON value, got nothing",
		"{} {}":                  "want one JSON value, got more",
		"{":                      "unexpected EOF",
		"NaN":                    "invalid character",
		"18446744073709551616":   "does not fit into 64 bits",
		"[-9223372036854775809]": "does not fit into 64 bits",
		`{"a": 1e999}`:           "does not fit into a 64-bit float",
	} {
		_, err := decodeJSON(strings.NewReader(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestValuesThatJSONLacksBecomeTexts(t *testing.T) {
	var out bytes.Buffer
	result := []any{math.NaN(), math.Inf(-1), []byte("hi"), map[any]any{int64(1): "<one>"}, nil}
	require.NoError(t, encodeJSON(&out, result))
	assert.Equal(t, `["NaN","-Inf","aGk=",{"1":"<one>"},null]`+"\n", out.String())
}
