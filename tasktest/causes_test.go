package tasktest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/tasktest"
)

// A Cause waits for the end of its context and sends the name of the cause to a socket.
type Cause struct{ Addr string }

var causes = map[string]error{
	"soft limit": task.ErrSoftLimit, "drain": task.ErrDrain, "shutdown": task.ErrShutdown, "caller gone": task.ErrCallerGone,
}

func (c Cause) Run(ctx context.Context, _ task.Info) (any, error) {
	conn, err := net.Dial("unix", c.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	fmt.Fprintln(conn, "running")
	<-ctx.Done()
	for name, cause := range causes {
		if errors.Is(context.Cause(ctx), cause) {
			fmt.Fprintln(conn, name)
		}
	}
	return nil, nil
}

// A task finds out why its context ended.
func TestATaskLearnsWhyItsContextEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		cfg  task.Config
		opts []task.CallOption
		end  func(p pool, giveUp context.CancelFunc)
	}{
		{"soft limit", task.Config{}, []task.CallOption{task.WithTimeLimit(time.Millisecond, 0)}, func(pool, context.CancelFunc) {}},
		{"drain", task.Config{DrainTimeout: 1100 * time.Millisecond}, nil, func(p pool, _ context.CancelFunc) {
			_ = p.Shutdown(context.Background())
		}},
		{"shutdown", task.Config{}, nil, func(p pool, _ context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = p.Shutdown(ctx)
		}},
		{"caller gone", task.Config{}, []task.CallOption{task.WithCancel()}, func(_ pool, giveUp context.CancelFunc) { giveUp() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.cfg.WorkerNum = 1
			assert.Equal(t, c.name, causeIn(t, startReal(t, c.cfg), c.opts, c.end), "a real pool")
			assert.Equal(t, c.name, causeIn(t, tasktest.New(t, c.cfg), c.opts, c.end), "a pool in this process")
		})
	}
}

// causeIn starts a Cause, ends its context and returns what it sent.
func causeIn(t *testing.T, p pool, opts []task.CallOption, end func(pool, context.CancelFunc)) string {
	t.Helper()
	addr := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", addr)
	require.NoError(t, err)
	defer l.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	called := make(chan struct{})
	go func() {
		defer close(called)
		_, _ = p.Sync(ctx, Cause{addr}, append(opts, task.WithTimeout(waitLimit))...)
	}()
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(waitLimit)))
	in := bufio.NewScanner(conn)
	require.True(t, in.Scan())
	go end(p, giveUp)
	require.True(t, in.Scan(), "%v", in.Err())
	<-called
	return in.Text()
}
