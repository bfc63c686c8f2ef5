package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Count is a flag's value that is a whole number from Min to Max.
type Count struct {
	P        *int
	Min, Max int
}

// Set implements pflag.Value.
func (c Count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < c.Min || n > c.Max {
		return fmt.Errorf("want a whole number from %d to %d", c.Min, c.Max)
	}
	*c.P = n
	return nil
}

func (c Count) String() string {
	if c.P == nil {
		return ""
	}
	return strconv.Itoa(*c.P)
}

// Type implements pflag.Value.
func (Count) Type() string { return "number" }

// A Size is a flag's value that is a number of bytes, at least Min, with or without a unit.
type Size[T int | int64] struct {
	P   *T
	Min T
}

// units has the largest unit first, which is the order in which String tries them.
var units = [...]struct {
	name  string
	bytes uint64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// Set implements pflag.Value.
func (z Size[T]) Set(s string) error {
	digits, unit := s, uint64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = rest, u.bytes
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt64/unit || uint64(T(n*unit)) != n*unit || T(n*unit) < z.Min {
		return fmt.Errorf("want at least %d bytes, such as 65536, 64KiB or 2MiB", z.Min)
	}
	*z.P = T(n * unit)
	return nil
}

// String returns the size in the largest unit that divides it.
func (z Size[T]) String() string {
	if z.P == nil {
		return ""
	}
	n := uint64(*z.P)
	for _, u := range units {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatUint(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10)
}

// Type implements pflag.Value.
func (Size[T]) Type() string { return "bytes" }

// A Duration is a flag's value that is a time span and obeys Rule.
type Duration struct {
	P    *time.Duration
	Rule Rule
}

// A Rule reports whether a time span is allowed, and completes the sentence "want a duration such
// as 1.5s or 2m, ".
type Rule = func(time.Duration) (ok bool, want string)

// Positive is the Rule of a time span above 0.
func Positive(d time.Duration) (ok bool, want string) { return d > 0, "more than 0" }

// NotNegative is the Rule of a time span of 0 or more.
func NotNegative(d time.Duration) (ok bool, want string) { return d >= 0, "0 or more" }

// NotZero is the Rule of a limit where a negative value means no limit.
func NotZero(d time.Duration) (ok bool, want string) { return d != 0, "not 0; negative for no limit" }

// Unlimited is the Rule of a limit where 0 or less means no limit.
func Unlimited(time.Duration) (ok bool, want string) { return true, "0 or less for no limit" }

// Set implements pflag.Value.
func (v Duration) Set(s string) error {
	d, err := time.ParseDuration(s)
	ok, want := v.Rule(d)
	if err != nil || !ok {
		return fmt.Errorf("want a duration such as 1.5s or 2m, %s", want)
	}
	*v.P = d
	return nil
}

func (v Duration) String() string {
	if v.P == nil || *v.P == 0 {
		return "0"
	}
	return v.P.String()
}

// Type implements pflag.Value.
func (Duration) Type() string { return "duration" }

// A Text is a flag's value that is a text and not empty.
type Text string

// Set implements pflag.Value.
func (t *Text) Set(s string) error {
	if s == "" {
		return errors.New("want a text that is not empty")
	}
	*t = Text(s)
	return nil
}

func (t *Text) String() string { return string(*t) }

// Type implements pflag.Value.
func (*Text) Type() string { return "text" }

// Names is a flag's value that is a list with commas. Of an empty text it becomes empty, but not
// nil.
type Names []string

// Set implements pflag.Value.
func (n *Names) Set(s string) error {
	*n = Names{}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			*n = append(*n, name)
		}
	}
	return nil
}

func (n *Names) String() string { return strings.Join(*n, ",") }

// Type implements pflag.Value.
func (*Names) Type() string { return "names" }

// Texts returns the list. A value with this method is a list in the config file.
func (n *Names) Texts() []string { return *n }
