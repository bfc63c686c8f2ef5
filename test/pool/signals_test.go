package pool_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

// The first signal asks a worker to drain, which changes nothing if it drains already. Only a second
// signal ends it at once.
func TestOnlyASecondSignalEndsAWorker_Found01(t *testing.T) {
	parallel(t)
	const drain, term, intr = "drain", "SIGTERM", "SIGINT"
	for _, order := range [][]string{
		{drain}, {term}, {intr}, {drain, term}, {drain, intr}, {term, drain}, {intr, drain},
		{term, intr}, {intr, term}, {drain, term, intr}, {drain, intr, term},
		{term, drain, intr}, {intr, drain, term}, {term, intr, drain}, {intr, term, drain},
	} {
		t.Run(strings.Join(order, ","), func(t *testing.T) {
			p := startPool(t, task.Config{WorkerNum: 1, DrainTimeout: time.Hour})
			m := testsync.NewRendezvous(t)
			_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
			require.NoError(t, err)
			held := m.Next()
			for _, step := range order {
				switch step {
				case drain:
					go func() { _ = p.Reload(context.Background()) }()
					p.event(func(e task.Event) bool { return e.Kind == "draining" && e.Worker.PID == held.PID })
				case term:
					_ = syscall.Kill(held.PID, syscall.SIGTERM) // it may be gone
				case intr:
					_ = syscall.Kill(held.PID, syscall.SIGINT)
				}
			}
			code := 4
			if !slices.Contains(order, term) || !slices.Contains(order, intr) {
				code = 0
				time.Sleep(100 * time.Millisecond) // for the worker to handle the signal
				held.Release("")
			}
			e := p.event(func(e task.Event) bool { return e.Kind == "exited" && e.Worker.PID == held.PID })
			assert.Equal(t, code, e.ExitCode, "%+v", e)
			assert.Equal(t, code != 0, len(e.Tasks) > 0, "tasks lost: %v", e.Tasks)
		})
	}
}

// systemd's KillMode=control-group sends SIGTERM to the parent and to each worker.
func TestASignalToEachProcessLosesNothing_Found02(t *testing.T) {
	parallel(t)
	for _, gap := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(fmt.Sprintf("%s after %s", sig, gap), func(t *testing.T) {
				p := startPool(t, task.Config{WorkerNum: 2, MaxRunningNum: 1, DrainTimeout: time.Hour})
				m := testsync.NewRendezvous(t)
				var held []*testsync.Held
				for range 2 {
					_, err := p.Async(t.Context(), Hold{Addr: m.Addr})
					require.NoError(t, err)
					held = append(held, m.Next())
				}
				ended := make(chan error, 1)
				go func() { ended <- p.Shutdown(context.Background()) }()
				time.Sleep(gap)
				for _, h := range held {
					require.NoError(t, syscall.Kill(h.PID, sig))
				}
				time.Sleep(100 * time.Millisecond) // for the workers to handle the signal
				for _, h := range held {
					h.Release("")
				}
				assert.NoError(t, <-ended)
			})
		}
	}
}
