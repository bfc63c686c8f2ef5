package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/taskd-go/task/protocol"
)

// A blob task returns the bytes that it was given.
type blob []byte

func (b *blob) Run(context.Context, Info) (any, error) { return []byte(*b), nil }
func (b *blob) OnException(_ context.Context, err error, _ Info) (any, bool, error) {
	return nil, false, err
}

func benchRig(b *testing.B) *rig {
	return start(b, func(r *rig) {
		r.slots = 64
		r.cfg.MaxPackageSize = 4 << 20
		r.cfg.OnDrift = func(records, running int) { b.Errorf("%d records, %d running", records, running) }
		r.tasks["blob"] = func(payload []byte) (Task, error) {
			var v blob
			dec := msgpack.GetDecoder()
			defer msgpack.PutDecoder(dec)
			dec.Reset(bytes.NewReader(payload))
			dec.DisableAllocLimit(true)
			data, err := dec.DecodeBytes()
			v = data
			return &v, err
		}
		nothing := &testTask{run: func(context.Context, Info) (any, error) { return nil, nil }}
		r.tasks["nothing"] = func([]byte) (Task, error) { return nothing, nil }
	})
}

// roundTrip writes one frame and reads one response into buf, without allocating.
func roundTrip(b *testing.B, nc *net.UnixConn, frame, buf []byte) {
	if _, err := nc.Write(frame); err != nil {
		b.Fatal(err)
	}
	for have, want := 0, protocol.HeaderSize; have < want; {
		n, err := nc.Read(buf[have:])
		if err != nil {
			b.Fatal(err)
		}
		if have += n; have >= protocol.HeaderSize {
			want = protocol.HeaderSize + int(binary.BigEndian.Uint32(buf))
		}
	}
}

// One caller on a connection of its own. Allocations are the worker's: the client side makes
// none. The task "nothing" decodes nothing, so what is left is the call's own cost.
func BenchmarkCall(b *testing.B) {
	for _, alone := range []bool{true, false} {
		for _, size := range []int{0, 64, 1 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("alone=%t/size=%d", alone, size), func(b *testing.B) {
				r := benchRig(b)
				p := r.dial()
				pkg := protocol.Package{ID: 1 << 20, Task: []byte("blob"), Alone: alone}
				if size == 0 {
					pkg.Task = []byte("nothing")
				} else {
					payload, err := msgpack.Marshal([]byte(strings.Repeat("x", size)))
					require.NoError(b, err)
					pkg.Payload = payload
				}
				frame := frameOf(pkg)
				first := p.call(pkg)
				require.True(b, first.OK)
				answer := make([]byte, size+512)
				id := pkg.ID
				b.SetBytes(int64(2 * size))
				b.ReportAllocs()
				for b.Loop() {
					id++
					protocol.SetID(frame, id)
					roundTrip(b, p.nc, frame, answer)
				}
			})
		}
	}
}

// The floor: the same bytes through a socket and back, with nothing done to them.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			path := b.TempDir() + "/s"
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			require.NoError(b, err)
			defer l.Close()
			go func() {
				nc, err := l.AcceptUnix()
				if err != nil {
					return
				}
				defer nc.Close()
				buf := make([]byte, size)
				for {
					if _, err := io.ReadFull(nc, buf); err != nil {
						return
					}
					if _, err := nc.Write(buf); err != nil {
						return
					}
				}
			}()
			nc, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
			require.NoError(b, err)
			defer nc.Close()
			frame, answer := make([]byte, size), make([]byte, size)
			binary.BigEndian.PutUint32(frame, uint32(size-protocol.HeaderSize))
			b.SetBytes(int64(2 * size))
			b.ReportAllocs()
			for b.Loop() {
				roundTrip(b, nc, frame, answer)
			}
		})
	}
}

// 64 callers' packages on one connection: the worker's side of the multiplexed form.
func BenchmarkShared(b *testing.B) {
	r := benchRig(b)
	p := r.dial()
	const window = 64
	frame := frameOf(protocol.Package{ID: 1 << 20, Task: []byte("nothing")})
	batch := bytes.Repeat(frame, window)
	first := p.call(protocol.Package{ID: 1, Task: []byte("nothing")})
	require.True(b, first.OK)
	var id atomic.Uint64
	id.Store(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		for i := range window {
			protocol.SetID(batch[i*len(frame):], id.Add(1))
		}
		if _, err := p.nc.Write(batch); err != nil {
			b.Fatal(err)
		}
		for range window {
			if _, err := p.read(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*window)/b.Elapsed().Seconds(), "calls/s")
}
