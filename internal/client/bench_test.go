package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

var benchSizes = []struct {
	name    string
	bytes   int
	callers []int
}{
	{"64B", 64, []int{1, 8, 64}},
	{"1KiB", 1 << 10, []int{64}},
	{"64KiB", 64 << 10, []int{64}},
	{"1MiB", 1 << 20, []int{8}},
}

// BenchmarkDo is a Sync of the echo task on two worker processes.
func BenchmarkDo(b *testing.B) {
	for _, size := range benchSizes {
		for _, callers := range size.callers {
			b.Run(fmt.Sprintf("%s/%d", size.name, callers), func(b *testing.B) {
				p := newRealPool(b, 2, 128)
				argument := binaryArgument(make([]byte, size.bytes))
				share(b, callers, func(n int) error {
					for range n {
						call := Call{Type: protocol.Sync, Task: "echo", Payload: argument, Deadline: within(limit)}
						if _, f := p.client.Do(context.Background(), &call); f != nil {
							return f
						}
					}
					return nil
				})
			})
		}
	}
}

// BenchmarkMany is four callers with batches of a hundred; the unit is one call.
func BenchmarkMany(b *testing.B) {
	for name, t := range map[string]protocol.Type{"Async": protocol.Async, "Sync": protocol.Sync} {
		b.Run(name, func(b *testing.B) {
			p := newRealPool(b, 2, 1024)
			argument := binaryArgument(make([]byte, 64))
			share(b, 4, func(n int) error {
				for ; n > 0; n -= 100 {
					calls := make([]Call, min(n, 100))
					for i := range calls {
						calls[i] = Call{Type: t, Task: "echo", Payload: argument, Deadline: within(limit)}
					}
					_, failures := p.client.Many(context.Background(), calls)
					for _, f := range failures {
						if f != nil {
							return f
						}
					}
				}
				return nil
			})
		})
	}
}

// BenchmarkBareEcho is the same traffic without a pool: a connection for each caller.
func BenchmarkBareEcho(b *testing.B) {
	for _, size := range benchSizes {
		for _, callers := range size.callers {
			b.Run(fmt.Sprintf("%s/%d", size.name, callers), func(b *testing.B) {
				dial := newBare(b, 2)
				var mu sync.Mutex
				share(b, callers, func(n int) error {
					mu.Lock()
					conn := dial()
					mu.Unlock()
					defer conn.Close()
					return bareEchoes(conn, n, size.bytes)
				})
			})
		}
	}
}

func bareEchoes(conn *net.UnixConn, n, size int) error {
	frame := binary.BigEndian.AppendUint32(nil, uint32(size))
	frame = append(frame, make([]byte, size)...)
	answer := make([]byte, len(frame))
	for range n {
		if _, err := conn.Write(frame); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, answer); err != nil {
			return err
		}
	}
	return nil
}

// share runs b.N calls, divided among callers. cpu-ns/op is what this process alone used.
func share(b *testing.B, callers int, calls func(n int) error) {
	b.ReportAllocs()
	began := cpuTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			n := b.N / callers
			if i < b.N%callers {
				n++
			}
			if err := calls(n); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
	require.False(b, b.Failed())
}
