package sys

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNowIsTheKernelsClock(t *testing.T) {
	var before, now, after int64
	width := int64(1 << 62)
	for range 100 { // the tightest of them: the others were interrupted
		b := readClock()
		n := Now()
		a := readClock()
		if a-b < width {
			width, before, now, after = a-b, b, n, a
		}
	}
	const off = int64(5 * time.Microsecond)
	assert.Greater(t, now, before-off)
	assert.Less(t, now, after+off)
}

func TestTheClockIsOneForAllProcesses_Row52(t *testing.T) {
	before := Now()
	text := output(t, helperCommand(t, "clock"))
	after := Now()
	there, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	require.NoError(t, err)
	assert.Greater(t, there, before)
	assert.Less(t, there, after)
}
