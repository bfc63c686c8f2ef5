// Package textcut shortens texts to a number of bytes without breaking a character.
package textcut

import "unicode/utf8"

// To returns the longest prefix of s that has at most limit bytes and ends between two characters.
// A negative limit counts as 0. Invalid UTF-8 in s may be cut anywhere.
func To(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	end := limit
	for end > 0 && limit-end < utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
