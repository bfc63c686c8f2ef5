package worker

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

func TestBlockedTaskHoldsUpNoOther(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	blocked := p.send(protocol.Package{Task: []byte("block")})
	r.awaitEntered()
	for range 20 {
		p.works()
	}
	r.gate <- struct{}{}
	got := p.next()
	require.Equal(t, blocked, got.ID)
	require.Equal(t, "done", valueOf(t, got))
}

// Several packages before the first response, whose responses come in any order.
func TestPipelining(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	const n = 500
	want := map[uint64]string{}
	var batch []protocol.Package
	for i := range n {
		s := fmt.Sprint("call ", i)
		want[uint64(i+1)] = s
		batch = append(batch, protocol.Package{Task: []byte("echo"), Payload: text(s)})
	}
	p.send(batch...)
	busy := 0
	for range n {
		got := p.next()
		s, pending := want[got.ID]
		require.True(t, pending, "a response to %d, which waits for none", got.ID)
		delete(want, got.ID)
		if got.Status == protocol.StatusBusy {
			busy++
			continue
		}
		require.Equal(t, s, valueOf(t, got))
	}
	c := r.still()
	require.EqualValues(t, busy, c.busy)
	require.EqualValues(t, n-busy, c.success)
}

// gunicorn #3626: a late answer is given to the next caller. 10,000 mixed calls, matched by id:
// none gets another's.
func TestAnswersKeepTheirIDs_Row50(t *testing.T) {
	r := start(t, nil)
	const conns, rounds = 4, 50
	done := make(chan error, conns)
	for c := range conns {
		p := r.dial()
		go func() { done <- mixedCalls(p, rounds, uint64(c)) }()
	}
	for range conns {
		require.NoError(t, <-done)
	}
	require.Zero(t, r.row.Running())
	r.still()
}

func mixedCalls(p *peer, rounds int, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		want := map[uint64]string{}
		var out []byte
		for range 50 {
			p.id++
			s := strings.Repeat(fmt.Sprint(seed, "-", p.id, " "), 1+rnd.IntN(40))
			want[p.id] = s
			out = append(out, frameOf(protocol.Package{ID: p.id, Task: []byte("echo"), Payload: text(s)})...)
		}
		if _, err := p.nc.Write(out); err != nil {
			return err
		}
		for range 50 {
			got, err := p.read()
			if err != nil {
				return err
			}
			s, pending := want[got.ID]
			delete(want, got.ID)
			if !pending || got.OK && !bytes.Equal(got.Data, text(s)) || !got.OK && got.Status != protocol.StatusBusy {
				return fmt.Errorf("call %d got %+v", got.ID, got)
			}
		}
	}
	return nil
}

// A client that sends one package, half-closes and reads is a complete client.
func TestHalfCloseStillGetsTheAnswer(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	p.send(protocol.Package{Task: []byte("block")})
	r.awaitEntered()
	require.NoError(t, p.nc.CloseWrite())
	r.gate <- struct{}{}
	require.Equal(t, "done", valueOf(t, p.next()))
	p.closed()
}

func TestCallerThatGoesCutsNothing(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	p.send(protocol.Package{Task: []byte("block")})
	r.awaitEntered()
	require.NoError(t, p.nc.Close())
	r.dial().works()
	require.Equal(t, 1, r.row.Running())
	r.gate <- struct{}{}
	require.Equal(t, count{accepted: 2, success: 2}, r.still())
}

// josdejong/workerpool #418: one running task cannot be stopped. With the cancel mark its
// context ends with its caller.
func TestCancelMarkEndsTheContext_Row55(t *testing.T) {
	mark := map[string]string{protocol.MetaCancel: "1"}
	t.Run("with the connection", func(t *testing.T) {
		r := start(t, nil)
		p := r.dial()
		p.send(
			protocol.Package{Task: []byte("obedient"), Meta: mark, Alone: true},
			protocol.Package{Task: []byte("block")},
		)
		r.awaitEntered()
		r.awaitEntered()
		require.NoError(t, p.nc.Close())
		r.eventually("only the unmarked task runs", func() bool { return r.row.Running() == 1 })
		require.ErrorIs(t, r.told()[0].Err, ErrCallerGone)
		close(r.gate)
	})
	t.Run("at the deadline", func(t *testing.T) {
		r := start(t, nil)
		p := r.dial()
		got := p.call(
			protocol.Package{
				Task:   []byte("obedient"),
				Meta:   mark,
				Expire: r.server.epochMono + int64(time.Since(r.server.epoch)+500*time.Millisecond),
			},
		)
		require.Equal(t, protocol.StatusTaskError, got.Status)
		require.Equal(t, ErrCallerGone.Error(), got.Text())
	})
}

func TestContextOfATask(t *testing.T) {
	r := start(t, nil)
	r.add("contexts", func(ctx context.Context, info Info) (any, error) {
		derived, stop := context.WithTimeout(context.WithValue(ctx, count{}, 1), time.Hour)
		defer stop()
		r.entered <- info
		<-derived.Done()
		return []string{
			ctx.Err().Error(),
			context.Cause(ctx).Error(),
			context.Cause(derived).Error(),
			fmt.Sprint(Draining(derived) != nil),
		}, nil
	})
	p := r.dial()
	p.send(protocol.Package{Task: []byte("contexts")})
	r.awaitEntered()
	r.server.Cut(ErrShutdown)
	require.Equal(t, []any{"context canceled", ErrShutdown.Error(), ErrShutdown.Error(), "true"}, valueOf(t, p.next()))
	require.Nil(t, Draining(context.Background()))
	// A task that starts after the cut begins with an ended context.
	got := p.call(protocol.Package{Task: []byte("obedient")})
	require.Equal(t, ErrShutdown.Error(), got.Text())
}

// A client that never reads is closed after the write's time limit; its tasks are not held up,
// and others neither.
func TestClientThatDoesNotRead(t *testing.T) {
	r := newRig(t, nil)
	r.server.answerTimeout = 100 * time.Millisecond
	r.server.Ready()
	go func() { r.served <- r.server.Serve() }()
	p := r.connect()
	big := protocol.Package{Task: []byte("echo"), Payload: text(strings.Repeat("x", 512<<10))}
	require.NoError(t, p.nc.SetWriteDeadline(time.Now().Add(waitLimit)))
	var err error
	for err == nil {
		p.id++
		big.ID = p.id
		_, err = p.nc.Write(frameOf(big))
	}
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	r.eventually("the connection is closed", func() bool {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		return len(r.server.conns) == 0
	})
	r.dial().works()
	r.still()
}

func TestLargeAnswers(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	for range 5 {
		s := strings.Repeat("large", 300<<10)
		require.Equal(t, s, p.value(protocol.Package{Task: []byte("echo"), Payload: text(s), Alone: true}))
		require.Equal(t, s[:100<<10], p.value(protocol.Package{Task: []byte("echo"), Payload: text(s[:100<<10])}))
	}
}

// The last id read is kept in the row, where it outlives the worker.
func TestLastIDReadIsInTheRow(t *testing.T) {
	r := start(t, nil)
	p := r.dial()
	const base = 77 << 32
	_, known := r.row.LastRead(base)
	require.False(t, known)
	p.send(protocol.Package{ID: base + 5, Task: []byte("block")}, protocol.Package{ID: base + 9, Task: []byte("block")})
	r.awaitEntered()
	r.awaitEntered()
	last, known := r.row.LastRead(base)
	require.True(t, known)
	require.EqualValues(t, base+9, last)
	close(r.gate)
}
