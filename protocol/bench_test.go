package protocol

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

var payloadSizes = []int{64, 1 << 10}

func benchPackage(b *testing.B, size int) *Package {
	payload, err := msgpack.Marshal(map[string]any{"Data": make([]byte, size)})
	if err != nil {
		b.Fatal(err)
	}
	return &Package{Type: Sync, ID: 1, Expire: 1 << 40, Task: []byte("main.Hello"), Payload: payload}
}

func BenchmarkAppendPackage(b *testing.B) {
	for _, size := range payloadSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := benchPackage(b, size)
			buf := make([]byte, 0, 2*size)
			b.ReportAllocs()
			for b.Loop() {
				frame := appendPackage(BeginFrame(buf), p)
				if err := EndFrame(frame, DefaultPackageSize); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParsePackage(b *testing.B) {
	for _, size := range payloadSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			body := appendPackage(nil, benchPackage(b, size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParsePackage(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkResponse(b *testing.B) {
	r := Response{ID: 7, OK: true, Data: benchPackage(b, 64).Payload, TaskID: 12}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseResponse(AppendResponse(buf, &r)); err != nil {
			b.Fatal(err)
		}
	}
}

// A map of 1 KiB with many small values: the most work per byte.
func BenchmarkCheck(b *testing.B) {
	m := make(map[string]any)
	for i := range 64 {
		m[fmt.Sprint("field", i)] = []any{i, int64(i) << 20, "x"}
	}
	raw, err := msgpack.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			frame := frameOf(b, make([]byte, size))
			src := bytes.NewReader(nil)
			r := NewReader(src, DefaultPackageSize)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(frame)
				if _, _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
