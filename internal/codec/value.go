package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/taskd-go/task/internal/raw"
)

// Value decodes the one value in b as nil, bool, int64, uint64 (if it exceeds int64), float64,
// string, []byte, []any, map[string]any (map[any]any if a key is not a string) or time.Time. b must
// have passed protocol.Check.
func Value(b []byte) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("decode: panic: %v", p)
		}
	}()
	d := decoder{b: b}
	if v, err = d.any(); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return v, nil
}

// any reads the next value as Value does.
func (d *decoder) any() (any, error) {
	start := d.at
	t, next := raw.Next(d.b, d.at)
	d.at = next
	switch t.Kind {
	case raw.Nil:
		return nil, nil
	case raw.Bool:
		return t.Bits == 1, nil
	case raw.Int:
		return int64(t.Bits), nil
	case raw.Uint:
		if n, ok := t.Int64(); ok {
			return n, nil
		}
		return t.Bits, nil
	case raw.Float:
		return math.Float64frombits(t.Bits), nil
	case raw.Str:
		return string(d.b[next-t.Len : next]), nil
	case raw.Bin:
		return append(make([]byte, 0, t.Len), d.b[next-t.Len:next]...), nil
	case raw.Ext:
		var v any
		d.at = start
		err := d.byLibrary(&v)
		return v, err
	case raw.Array:
		return d.anyList(t.Len)
	case raw.Map:
		return d.anyMap(t.Len)
	}
	return nil, errors.New("the bytes are not a msgpack value")
}

func (d *decoder) anyList(n int) (any, error) {
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = d.any(); err != nil {
			return nil, inside(fmt.Sprintf("[%d]", i), err)
		}
	}
	return list, nil
}

// anyMap reads a map[string]any, or a map[any]any if a key is not a string.
func (d *decoder) anyMap(n int) (any, error) {
	named := make(map[string]any, n)
	var mixed map[any]any
	for range n {
		key, err := d.any()
		if err != nil {
			return nil, inside("[key]", err)
		}
		if key != nil && !reflect.ValueOf(key).Comparable() {
			return nil, fmt.Errorf("%T cannot be the key of a map", key)
		}
		value, err := d.any()
		if err != nil {
			return nil, inside(fmt.Sprintf("[%v]", key), err)
		}
		name, isName := key.(string)
		if !isName && mixed == nil {
			mixed = make(map[any]any, n)
			for k, v := range named {
				mixed[k] = v
			}
		}
		if mixed != nil {
			mixed[key] = value
		} else {
			named[name] = value
		}
	}
	if mixed != nil {
		return mixed, nil
	}
	return named, nil
}
