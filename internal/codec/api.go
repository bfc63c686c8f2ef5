package codec

// Append appends v as one msgpack value: structs as maps by field name (msgpack tags count). A panic in a custom encoder is an error.
func Append(dst []byte, v any) ([]byte, error) { panic("stub") }

// Decode reads the one value in raw into v, a non-nil pointer.
func Decode(raw []byte, v any) error { panic("stub") }

// Value reads raw as nil, bool, int64, uint64 (above int64), float64, string, []byte,
// []any, map[string]any (map[any]any when a key is no string), time.Time.
func Value(raw []byte) (any, error) { panic("stub") }
