package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// damaged yields b, b cut short at each length, b with one more byte, and b with each byte changed
// to each other value.
func damaged(b []byte) [][]byte {
	all := [][]byte{b, append(slices.Clone(b), 0)}
	for i := range b {
		all = append(all, b[:i])
		for c := range 256 {
			changed := slices.Clone(b)
			changed[i] = byte(c)
			all = append(all, changed)
		}
	}
	return all
}

// The fast parsers must agree with the general ones.
func TestTheUsualIsReadLikeTheRest(t *testing.T) {
	t.Parallel()
	payload := []byte{0x82, 0xa1, 'a', 0x93, 1, 0xc0, 0xc4, 1, 9, 0xa1, 'b', 0xcb, 1, 2, 3, 4, 5, 6, 7, 8}
	for _, p := range []Package{
		{Type: Sync, ID: 1<<40 + 5, Expire: 1 << 50, Task: []byte("main.Task"), Payload: payload},
		{Type: Async, Alone: true, ID: 1, Expire: -1, Task: []byte("t"), Payload: []byte{0xc0}},
	} {
		body := append(AppendHead(nil, &p), p.Payload...)
		got, ok := parseOwn(body)
		require.True(t, ok)
		require.Equal(t, p, got)
		for _, b := range damaged(body) {
			want, wantErr := parsePackage(b)
			got, err := ParsePackage(b)
			require.Equal(t, wantErr, err, "%x", b)
			require.Equal(t, want, got, "%x", b)
		}
	}
	for _, r := range []Response{
		{ID: 1<<40 + 5, OK: true, Data: payload, TaskID: 70_000},
		{ID: 1 << 40, OK: true, Data: []byte{0xc0}},
	} {
		body := AppendResponse(nil, &r)
		got, ok := parseSuccess(body)
		require.True(t, ok)
		require.Equal(t, r, got)
		for _, b := range damaged(body) {
			want, wantErr := parseResponse(b)
			got, err := ParseResponse(b)
			require.Equal(t, wantErr, err, "%x", b)
			require.Equal(t, want, got, "%x", b)
		}
	}
}
