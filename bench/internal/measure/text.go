package measure

import (
	"fmt"
	"strings"
)

// Show formats x, or returns a dash for NotMeasured.
func Show(format string, x float64) string {
	if !Measured(x) {
		return "–"
	}
	return fmt.Sprintf(format, x)
}

// Thousands formats x as a whole number with commas between groups of three digits.
func Thousands(x float64) string {
	s := Show("%.0f", x)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// BytesText formats a size in its largest whole unit.
func BytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d B", n)
	}
}
