package codec

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type (
	shown     struct{ Name string }
	hidden    struct{ name string }
	embedding struct{ shown }
	textual   struct{ a int }
)

func (e textual) MarshalText() ([]byte, error) { return []byte{byte(e.a)}, nil }

func TestCheckAsksWhetherAnythingTravels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"no fields":              {struct{}{}, ""},
		"a field of an embedded": {embedding{}, ""},
		"fields left out on demand": {struct {
			cache int `msgpack:"-"`
		}{}, ""},
		"padding":               {struct{ _ [8]byte }{}, ""},
		"an encoder of its own": {textual{}, ""},
		"a time":                {time.Time{}, ""},
		"a number":              {1, ""},
		"any":                   {(*any)(nil), ""},
		"hidden fields":         {hidden{"x"}, "none of its fields is exported"},
		"a pointer to them":     {&hidden{}, "none of its fields is exported"},
		"a function":            {func() {}, "msgpack has no func"},
		"a channel":             {make(chan int), "msgpack has no chan"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(reflect.TypeOf(c.value))
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
		})
	}
}
