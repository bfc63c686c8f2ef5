package pool_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

func TestDeadlinesAndContexts(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	t.Run("a context that ended before the call", func(t *testing.T) {
		parallel(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Sync(ctx, Echo{1})
		assert.ErrorIs(t, err, context.Canceled)
		e := callError(t, err)
		assert.Equal(t, task.ErrSockTimeout, e.Status)
		assert.Equal(t, task.NotRun, e.Delivery)
	})
	t.Run("a context that ends during the run", func(t *testing.T) {
		parallel(t)
		m := testsync.NewRendezvous(t)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := p.Sync(ctx, Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
			failed <- err
		}()
		g := m.Next()
		cancel()
		err := <-failed
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, task.MayHaveRun, callError(t, err).Delivery)
		g.Release("")
	})
	t.Run("the context's deadline counts", func(t *testing.T) {
		parallel(t)
		m := testsync.NewRendezvous(t)
		ctx, cancel := context.WithTimeout(t.Context(), briefly)
		defer cancel()
		_, err := p.Sync(ctx, Hold{Addr: m.Addr}, task.WithTimeout(waitLimit))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		m.Next().Release("")
	})
	t.Run("WithTimeout alone is no context's end", func(t *testing.T) {
		parallel(t)
		m := testsync.NewRendezvous(t)
		_, err := p.Sync(t.Context(), Hold{Addr: m.Addr}, task.WithTimeout(briefly))
		assert.ErrorIs(t, err, task.ErrSockTimeout)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		m.Next().Release("")
	})
}

// Duration zero means "disabled" in the configuration but "fail now" in the code.
func TestTimeoutsAtTheEdges_Row53(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	for _, d := range []time.Duration{0, -1, math.MinInt64, math.MaxInt64, time.Hour} {
		_, err := p.Sync(t.Context(), Echo{1}, task.WithTimeout(d))
		assert.NoError(t, err, "%d", d)
		_, err = p.Async(t.Context(), Echo{1}, task.WithTimeout(d), task.WithWait(d))
		assert.NoError(t, err, "%d", d)
	}
	_, err := p.Sync(t.Context(), Echo{1}, task.WithTimeout(1))
	e := callError(t, err)
	assert.Contains(t, []task.Status{task.ErrSockTimeout, task.ErrPackageExpire}, e.Status)
}

// There is no way to stop one running task, and shutdown waits hours.
func TestWithCancelEndsTheTask_Row55(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	for name, end := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"by its context": context.WithCancel,
		"by its deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, briefly)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := testsync.NewRendezvous(t)
			ctx, cancel := end(t.Context())
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := p.Sync(ctx, Hold{Addr: m.Addr, Ctx: true}, task.WithCancel(), task.WithTimeout(waitLimit))
				failed <- err
			}()
			g := m.Next()
			if name == "by its context" {
				cancel()
			}
			assert.Error(t, <-failed)
			g.Closed(t)
			p.still()
		})
	}
	t.Run("not without it", func(t *testing.T) {
		m := testsync.NewRendezvous(t)
		before := p.still()
		_, err := p.Sync(t.Context(), Hold{Addr: m.Addr, Ctx: true}, task.WithTimeout(briefly))
		require.Error(t, err)
		m.Next().Release("")
		assert.Equal(t, before.Success+1, p.still().Success)
	})
}

func TestMetaTravels(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	meta := map[string]string{"traceparent": "00-1"}
	s, err := task.As[Self](p.Sync(t.Context(), Who{}, task.WithMeta(meta)))
	require.NoError(t, err)
	assert.Equal(t, meta, s.Info.Meta)
	s, err = task.As[Self](p.Sync(t.Context(), Who{}, task.WithMeta(meta), task.WithCancel()))
	require.NoError(t, err)
	assert.Equal(t, meta, s.Info.Meta, "the library's own mark is taken out")
}

func TestTooMuchMetaIsRefusedAtTheCall(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	meta := func(n int) task.CallOption {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = "v"
		}
		return task.WithMeta(m)
	}
	for name, c := range map[string]struct {
		opts []task.CallOption
		most int
	}{
		"alone":           {nil, 128},
		"with WithCancel": {[]task.CallOption{task.WithCancel()}, 127},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Sync(t.Context(), Echo{1}, append(c.opts, meta(c.most))...)
			require.NoError(t, err)
			_, err = p.Sync(t.Context(), Echo{1}, append(c.opts, meta(c.most+1))...)
			e := callError(t, err)
			assert.Equal(t, task.ErrIllegalPackage, e.Status)
			assert.Equal(t, task.NotRun, e.Delivery)
			assert.Equal(t, fmt.Sprintf("WithMeta: %d pairs, at most %d are allowed", c.most+1, c.most), e.Message)
		})
	}
}

func TestReservedMetaIsRefusedAtTheCall(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	_, err := p.Sync(t.Context(), Echo{1}, task.WithMeta(map[string]string{"a": "b", "taskd.cancel": "1"}))
	e := callError(t, err)
	assert.Equal(t, task.ErrIllegalPackage, e.Status)
	assert.Equal(t, task.NotRun, e.Delivery)
	assert.Equal(t, `WithMeta: the key "taskd.cancel" begins with "taskd.", which is reserved`, e.Message)
}
