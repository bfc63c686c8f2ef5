// Package textcut shortens texts to a number of bytes without breaking a character.
package textcut

import "unicode/utf8"

// Mark is the end of a text that was cut.
const Mark = "… (cut)"

// To returns s if it has at most limit bytes, else its beginning and Mark, together at most limit
// bytes. It cuts between two characters; invalid UTF-8 may be cut anywhere. A limit without room
// for Mark leaves it out, and a negative limit counts as 0.
func To(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if limit < len(Mark) {
		return Prefix(s, max(limit, 0))
	}
	return Prefix(s, limit-len(Mark)) + Mark
}

// Prefix returns the longest prefix of s that has at most limit bytes and ends between two
// characters. It may end anywhere in invalid UTF-8. limit is not negative.
func Prefix[T string | []byte](s T, limit int) T {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && limit-end < utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
