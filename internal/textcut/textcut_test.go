package textcut

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, s string
		limit   int
		want    string
	}{
		{"short enough", "abc", 3, "abc"},
		{"ASCII", "abcd", 3, "abc"},
		{"at a character's end", "aéb", 3, "aé"},
		{"within two bytes", "aéb", 2, "a"},
		{"within four bytes", "a😀b", 4, "a"},
		{"no room for the first character", "😀", 3, ""},
		{"nothing", "abc", 0, ""},
		{"a negative limit", "abc", -1, ""},
		{"room for the mark alone", "abcdefghij", len(Mark), Mark},
		{"room for the mark and more", "abcdefghijkl", len(Mark) + 2, "ab" + Mark},
		{"the mark after a whole character", "aébcdefghijkl", len(Mark) + 2, "a" + Mark},
		{"as long as the limit", strings.Repeat("a", 20), 20, strings.Repeat("a", 20)},
		{"continuation bytes alone", strings.Repeat("\x80", 10), 8, "\x80\x80\x80\x80"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, To(tt.s, tt.limit))
		})
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "aé", Prefix("aéb", 3))
	assert.Equal(t, "a", Prefix("aéb", 2))
	assert.Equal(t, "a", Prefix("a", 2))
	assert.Equal(t, []byte("a"), Prefix([]byte("a😀b"), 4))
}
