package poolcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/taskd-go/task/cmd/taskd/internal/term"
)

// decodeJSON reads one JSON value, the arguments of a task. Whole numbers keep 64 bits: they become
// int64, or uint64 if they are too large for it.
func decodeJSON(r io.Reader) (any, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("want a JSON value, got nothing")
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON value, got more")
	}
	return exact(v)
}

// exact replaces the numbers in a decoded value, in place.
func exact(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case []any:
		for i := range v {
			if v[i], err = exact(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = exact(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func number(s string) (any, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%s does not fit into a 64-bit float", s)
		}
		return f, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s does not fit into 64 bits; write it as a text", s)
	}
	return n, nil
}

// encodeJSON writes the result of a task as one line of JSON. Bytes become base64, the keys of a
// map become texts, and so does a float that JSON lacks.
func encodeJSON(w io.Writer, v any) error {
	if err := term.JSON(w, showable(v)); err != nil {
		return fmt.Errorf("the result cannot be shown as JSON: %w", err)
	}
	return nil
}

func showable(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	case []any:
		for i := range v {
			v[i] = showable(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = showable(v[k])
		}
	case map[any]any:
		texts := make(map[string]any, len(v))
		for k, e := range v {
			texts[fmt.Sprint(k)] = showable(e)
		}
		return texts
	}
	return v
}
