package pool_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/testsync"
)

func TestAttachToServerOnce(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 1})
	srv := &http.Server{}
	require.NoError(t, p.AttachToServer(srv))
	assert.ErrorContains(t, p.AttachToServer(srv), "already")
	_, err := p.Sync(t.Context(), Echo{1})
	assert.NoError(t, err)
}

// Every request that is in flight when the server shuts down gets its task's
// answer, and then no worker is left.
func TestServerShutdownUnderLoad(t *testing.T) {
	parallel(t)
	p := newPool(t, task.Config{WorkerNum: 2, MaxRunningNum: 128})
	m := testsync.NewRendezvous(t)
	begun := make(chan struct{}, 64)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		s, err := task.As[string](p.Sync(context.WithoutCancel(r.Context()), Hold{Addr: m.Addr}, task.WithTimeout(waitLimit)))
		if err == nil {
			// A second call in the same request, well after the shutdown's beginning.
			_, err = p.Sync(context.Background(), Echo{1})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, s)
	})}
	require.NoError(t, p.AttachToServer(srv))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()

	client := &http.Client{Transport: &http.Transport{}}
	const requests = 16
	answers := make(chan string, requests)
	var wg sync.WaitGroup
	for range requests {
		wg.Go(func() {
			resp, err := client.Get("http://" + l.Addr().String())
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			answers <- string(b)
		})
	}
	var held []*testsync.Held
	for range requests {
		<-begun
		held = append(held, m.Next())
	}
	down := make(chan error, 1)
	go func() { down <- srv.Shutdown(context.Background()) }()
	assert.ErrorIs(t, <-served, http.ErrServerClosed)
	for _, g := range held {
		g.Release("answered")
	}
	wg.Wait()
	for range requests {
		assert.Equal(t, "answered", <-answers)
	}
	require.NoError(t, <-down)
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Empty(t, p.children(), "no worker is left")
	client.CloseIdleConnections()
}

type plainServer struct {
	hooks []func()
	idle  chan struct{}
}

func (s *plainServer) RegisterOnShutdown(f func()) { s.hooks = append(s.hooks, f) }

type idleServer struct{ plainServer }

func (s *idleServer) Idle() <-chan struct{} { return s.idle }

func TestOtherServers(t *testing.T) {
	parallel(t)
	t.Run("without Idle the drain begins at once", func(t *testing.T) {
		p := newPool(t, task.Config{WorkerNum: 1})
		s := &plainServer{}
		require.NoError(t, p.AttachToServer(s))
		require.Len(t, s.hooks, 1)
		s.hooks[0]()
		_, err := p.Sync(t.Context(), Echo{1})
		assert.ErrorIs(t, err, task.ErrClosed)
	})
	t.Run("with Idle it waits", func(t *testing.T) {
		p := newPool(t, task.Config{WorkerNum: 1})
		s := &idleServer{plainServer{idle: make(chan struct{})}}
		require.NoError(t, p.AttachToServer(s))
		done := make(chan struct{})
		go func() { s.hooks[0](); close(done) }()
		_, err := p.Sync(t.Context(), Echo{1})
		assert.NoError(t, err)
		close(s.idle)
		<-done
		_, err = p.Sync(t.Context(), Echo{1})
		assert.ErrorIs(t, err, task.ErrClosed)
	})
	t.Run("at most DrainTimeout", func(t *testing.T) {
		p := newPool(t, task.Config{WorkerNum: 1, DrainTimeout: 50 * time.Millisecond})
		s := &idleServer{plainServer{idle: make(chan struct{})}}
		require.NoError(t, p.AttachToServer(s))
		s.hooks[0]()
		_, err := p.Sync(t.Context(), Echo{1})
		assert.ErrorIs(t, err, task.ErrClosed)
	})
}
