package worker

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

func TestTheFirstLargeFrameIsToldOnce(t *testing.T) {
	large := strings.Repeat("x", largeFrame)
	for name, p := range map[string]protocol.Package{
		"of a request": {Task: []byte("swallow"), Payload: text(large)},
		"of a result":  {Task: []byte("grow")},
	} {
		t.Run(name, func(t *testing.T) {
			var told atomic.Int32
			r := start(t, func(r *rig) {
				r.cfg.OnLarge = func() { told.Add(1) }
				r.add("swallow", func(context.Context, Info) (any, error) { return nil, nil })
				r.add("grow", func(context.Context, Info) (any, error) { return large, nil })
			})
			c := r.dial()
			c.works()
			require.Zero(t, told.Load())
			for range 3 {
				require.True(t, c.call(p).OK)
				require.EqualValues(t, 1, told.Load())
			}
		})
	}
}

// A large result has a write of its own, and its limit.
func TestLargeResultsBesideSmallOnes(t *testing.T) {
	const limit = 1 << 20
	largest := make([]byte, limit-30)
	r := start(t, func(r *rig) {
		r.cfg.MaxPackageSize = limit
		r.slots = 64
		r.add("bytes", func(context.Context, Info) (any, error) { return largest, nil })
		r.add("more", func(context.Context, Info) (any, error) { return make([]byte, limit), nil })
	})
	p := r.dial()
	var batch []protocol.Package
	for range 10 {
		batch = append(
			batch,
			protocol.Package{Task: []byte("bytes")},
			protocol.Package{Task: []byte("echo"), Payload: text("small")},
			protocol.Package{Task: []byte("more")},
		)
	}
	p.send(batch...)
	want := map[protocol.Status]int{protocol.StatusOK: 20, protocol.StatusResponseTooLarge: 10}
	got := map[protocol.Status]int{}
	for range batch {
		a := p.next()
		got[a.Status]++
		if a.Status == protocol.StatusResponseTooLarge {
			require.Contains(t, a.Text(), "the limit is 1048576")
		}
	}
	require.Equal(t, want, got)
}

// A task that runs in the only slot may use its memory again: its result was taken before the slot was free.
func TestTheMemoryOfALargeResultIsTheTasks(t *testing.T) {
	scratch := make([]byte, 256<<10)
	runs := byte(0)
	r := start(t, func(r *rig) {
		r.slots = 1
		r.add("scratch", func(context.Context, Info) (any, error) {
			runs++
			for i := range scratch {
				scratch[i] = runs
			}
			return scratch, nil
		})
	})
	var all sync.WaitGroup
	for range 4 {
		p := r.dial()
		all.Go(func() {
			for range 50 {
				if a := p.call(protocol.Package{Task: []byte("scratch")}); a.OK {
					got := valueOf(t, a).([]byte)
					assert.Equal(t, len(got), bytes.Count(got, got[:1]), "one run's bytes")
				}
			}
		})
	}
	all.Wait()
}
