package term

import (
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode"
)

// Cell returns text as one line of at most width characters. It drops control characters, which a
// terminal would obey.
func Cell(text string, width int) string {
	return cut(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text), width)
}

// cut returns the first width characters of text, the last of them an ellipsis where there were
// more.
func cut(text string, width int) string {
	runes := []rune(text)
	switch {
	case len(runes) <= width:
		return text
	case width < 1:
		return ""
	}
	return string(runes[:width-1]) + "…"
}

// Stamp returns t as tables show it: in local time to the second, or - for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// JSON writes v as one line of JSON.
func JSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
