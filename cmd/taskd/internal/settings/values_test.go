package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizesPrintInTheLargestUnitThatDividesThem(t *testing.T) {
	for text, want := range map[string]string{
		"512": "512", "2048": "2KiB", "3MiB": "3MiB", "1536KiB": "1536KiB", "1GiB": "1GiB",
	} {
		var n int
		z := Size[int]{P: &n}
		require.NoError(t, z.Set(text))
		assert.Equal(t, want, z.String())
	}
}

func TestSizesThatOverflowAreRefused(t *testing.T) {
	for _, text := range []string{
		"9223372036854775808", "8589934592GiB", "17179869184GiB", "-1", "1.5MiB", "NaN", "MiB", "",
	} {
		var n int
		assert.Error(t, Size[int]{P: &n}.Set(text), text)
	}
}
