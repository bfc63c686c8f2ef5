package worker

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

// Whatever a connection carries, the server answers the next one, and its columns add up.
func FuzzConn(f *testing.F) {
	echo := frameOf(protocol.Package{ID: 1, Task: []byte("echo"), Payload: text("x")})
	f.Add(echo)
	f.Add(append(echo, echo...))
	f.Add(frameOf(protocol.Package{ID: 9, Type: protocol.Async, Alone: true, Task: []byte("panic"), Soft: 1, Hard: 2}))
	f.Add(
		frameOf(
			protocol.Package{
				ID:     9,
				Alone:  true,
				Task:   []byte("goexit"),
				Meta:   map[string]string{protocol.MetaCancel: "1"},
				Expire: 1,
			},
		),
	)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 5, 0xdd, 4, 0, 0, 0})

	f.Fuzz(func(t *testing.T, data []byte) {
		r := start(t, func(r *rig) {
			r.cfg.MaxPackageSize = 64 << 10
			r.cfg.FrameTimeout = 100 * time.Millisecond
		})
		p := r.dial()
		// The worker may have closed by then.
		_, _ = p.nc.Write(data)
		_ = p.nc.CloseWrite()
		for {
			_, err := p.read()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, p.nc.Close())
		r.dial().works()
		r.still()
	})
}
