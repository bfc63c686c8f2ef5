package control

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pair returns the two ends of a socket pair.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "pair")
		ends[i], err = net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	from, to := NewConn(a), NewConn(b)
	messages := []Message{
		{Kind: KindHandover, Handover: &Handover{
			Version: Version, Build: "b", ServerName: "N", Index: 3, Generation: 9, Tasks: []string{"x", "y"},
			Settings: Settings{WorkerNum: 4, TimeLimit: time.Minute, MaxWorkerMemory: 1 << 40},
		}},
		{Kind: KindDrain, End: true, Within: -1},
		{Kind: KindSoftLimit, TaskID: 1<<64 - 1, Task: "t", Text: "two\nlines", Limit: time.Second, Started: 1<<63 - 1},
		{Kind: KindBootError, Text: strings.Repeat("x", 100_000)},
	}
	go func() {
		for _, m := range messages {
			if err := from.Send(m); err != nil {
				t.Error(err)
			}
		}
		from.Close()
	}()
	for _, want := range messages {
		got, err := to.Receive()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := to.Receive()
	assert.ErrorIs(t, err, io.EOF)
}

func TestConcurrentSendsDoNotMix(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 50
	a, b := pair(t)
	from, to := NewConn(a), NewConn(b)
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for range each {
				if err := from.Send(Message{Kind: KindSuspect, Text: strings.Repeat(fmt.Sprint(s), 5000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range senders * each {
		m, err := to.Receive()
		require.NoError(t, err)
		assert.Equal(t, strings.Repeat(m.Text[:1], 5000), m.Text)
	}
	all.Wait()
}

// The other side is stopped for a while. Messages that were sent to it arrive whole and in order.
// Refused ones do not arrive.
func TestSendGivesUpOnASideThatDoesNotRead(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	c := NewConn(a)
	big := Message{Kind: KindBootError, Text: strings.Repeat("x", maxLine-100)}
	began := time.Now()
	require.NoError(t, c.Send(big), "it has begun")
	require.ErrorIs(t, c.Send(Message{Kind: KindDrain}), os.ErrDeadlineExceeded)
	assert.Less(t, time.Since(began), time.Minute)

	got := make(chan Message, 2)
	go func() {
		r := NewConn(b)
		for range 2 {
			m, err := r.Receive()
			assert.NoError(t, err)
			got <- m
		}
	}()
	for errors.Is(c.Send(Message{Kind: KindAccept}), os.ErrDeadlineExceeded) {
	}
	assert.Equal(t, big, <-got)
	assert.Equal(t, KindAccept, (<-got).Kind)
}

func TestLinesOverTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	c := NewConn(b)
	assert.ErrorContains(t, c.Send(Message{Kind: KindDrain, Text: strings.Repeat("x", maxLine)}), "the limit is 1048576")
	go func() { _, _ = a.Write([]byte(strings.Repeat("x", 2*maxLine))) }()
	_, err := c.Receive()
	assert.ErrorContains(t, err, "more than 1048576 bytes")
}

func TestTheEndInTheMiddleOfALineIsTheEnd(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	_, err := a.Write([]byte(`{"Kind":"drain"`))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = NewConn(b).Receive()
	assert.ErrorIs(t, err, io.EOF)
}

func TestAForeignLineIsAnErrorAndNotTheEnd(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	_, err := a.Write([]byte("hello\n" + `{"Kind":"drain"}` + "\n"))
	require.NoError(t, err)
	c := NewConn(b)
	_, err = c.Receive()
	assert.ErrorContains(t, err, "a line of 6 bytes")
	m, err := c.Receive()
	require.NoError(t, err)
	assert.Equal(t, KindDrain, m.Kind)
}
