package sqlqueue

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task/internal/textcut"
)

func TestALongTextIsStoredCutWithAMark_Found86(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]string{
		"characters": strings.Repeat("é", 5<<19), "NULs": strings.Repeat("\x00", maxText), "no UTF-8": strings.Repeat("\xff", 5<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := storable(long)
			assert.LessOrEqual(t, len(text), maxText)
			assert.True(t, utf8.ValidString(text))
			assert.NotContains(t, text, "\x00")
			assert.True(t, strings.HasSuffix(text, textcut.Mark), "a reader sees that it is not the whole text")
		})
	}
	assert.Equal(t, "whole", storable("whole"))
}
