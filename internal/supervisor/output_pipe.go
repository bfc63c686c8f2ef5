package supervisor

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	maxRead    = 32 << 10
	maxBacklog = 64 << 10 // bytes that a worker may be ahead of an outlet; at its end, what its pipe holds comes on top
	maxPipe    = 1 << 20  // bytes that a pipe may hold
)

// A backlog holds output that was read and is not forwarded yet. One goroutine adds to it and
// another reads from it.
type backlog struct {
	mu    sync.Mutex
	data  []byte
	ended bool
	more  chan struct{} // data was added, or the output has ended
	room  chan struct{} // data was read
}

func newBacklog() *backlog {
	return &backlog{more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// add appends p. While maxBacklog bytes or more wait, it waits first, but not after exited is closed.
func (b *backlog) add(p []byte, exited <-chan struct{}) {
	for b.full() {
		select {
		case <-b.room:
			continue
		case <-exited:
		}
		break
	}
	b.mu.Lock()
	b.data = append(b.data, p...)
	b.mu.Unlock()
	notify(b.more)
}

func (b *backlog) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.data) >= maxBacklog
}

func (b *backlog) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	notify(b.more)
}

// Read waits for output. After the last byte it returns io.EOF.
func (b *backlog) Read(p []byte) (int, error) {
	for {
		n, ended := b.take(p)
		switch {
		case n > 0:
			notify(b.room)
			return n, nil
		case ended:
			return 0, io.EOF
		}
		<-b.more
	}
}

func (b *backlog) take(p []byte) (n int, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = copy(p, b.data)
	if b.data = b.data[n:]; len(b.data) == 0 {
		b.data = nil
	}
	return n, b.ended
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// A pipeEnd reads the output of a worker. After expire it reads what the pipe holds and then
// returns io.EOF, even if another process holds the other end open.
type pipeEnd struct {
	*os.File
	rest int // bytes that may be read after expire
}

func (e *pipeEnd) expire() {
	if e.SetReadDeadline(time.Unix(1, 0)) != nil {
		e.Close()
	}
}

func (e *pipeEnd) Read(p []byte) (int, error) {
	n, err := e.File.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	raw, err := e.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = syscall.Read(int(fd), p[:min(len(p), e.rest)]) })
	if errors.Is(failed, syscall.EINTR) {
		return 0, nil
	}
	if err != nil || failed != nil || n <= 0 {
		return 0, io.EOF
	}
	e.rest -= n
	return n, nil
}
