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
		return prefix(s, max(limit, 0))
	}
	return prefix(s, limit-len(Mark)) + Mark
}

// prefix returns the longest prefix of s that has at most limit bytes and ends between two
// characters. s is longer than limit.
func prefix(s string, limit int) string {
	end := limit
	for end > 0 && limit-end < utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
