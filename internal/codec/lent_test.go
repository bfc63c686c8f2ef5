package codec

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// written is what WriteTo puts on a connection.
func written(t *testing.T, l *Lent, b []byte) []byte {
	t.Helper()
	here, there := net.Pipe()
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(there)
		got <- all
	}()
	n, err := l.WriteTo(here, b)
	require.NoError(t, err)
	require.NoError(t, here.Close())
	assert.Equal(t, len(b)+l.Size(), n)
	return <-got
}

func TestWhatIsLentComesToTheSameBytes(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("large"), Large)
	longer := strings.Repeat("longer", Large)
	type body struct {
		Before string
		Data   []byte
		Text   string
		After  int
		Small  []byte
	}
	for name, c := range map[string]struct {
		v    any
		lent int
	}{
		"bytes":                    {large, len(large)},
		"a string":                 {longer, len(longer)},
		"just enough":              {large[:Large], Large},
		"too little":               {large[:Large-1], 0},
		"a struct":                 {body{"before", large, longer, -1, large[:7]}, len(large) + len(longer)},
		"a pointer":                {&body{Data: large}, len(large)},
		"nothing in it":            {body{}, 0},
		"one twice":                {body{Data: large, Small: large}, 2 * len(large)},
		"a map is copied":          {map[string][]byte{"Data": large}, 0},
		"a slice is copied":        {[][]byte{large, large}, 0},
		"own encoder's are copied": {loose(append([]byte{0xc6, 0, 1, 0, 0}, make([]byte, 1<<16)...)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := Append([]byte("head "), c.v)
			require.NoError(t, err)
			var l Lent
			for range 2 { // it can be used again
				got, err := AppendLending([]byte("head "), c.v, &l)
				require.NoError(t, err)
				assert.Equal(t, c.lent, l.Size())
				assert.Len(t, got, len(want)-c.lent)
				got = append(got, " tail"...)
				for range 2 { // it can be written again
					assert.Equal(t, string(want)+" tail", string(written(t, &l, got)))
				}
				l.Reset()
				assert.Zero(t, l.Size())
			}
		})
	}
}
