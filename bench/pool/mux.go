package main

import (
	"bufio"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/taskd-go/task/bench/internal/measure"
)

// A coalescer writes the frames of several goroutines together. The first goroutine also writes the
// frames that others add meanwhile. It yields once before each write, so that they can.
type coalescer struct {
	conn    net.Conn
	waiting atomic.Int32 // calls without an answer
	mu      sync.Mutex
	out     []byte
	spare   []byte
	writing bool
}

func (w *coalescer) send(id uint32, body []byte) error {
	w.mu.Lock()
	w.out = appendFrame(w.out, id, body)
	if w.writing {
		w.mu.Unlock()
		return nil
	}
	w.writing = true
	for len(w.out) > 0 {
		w.mu.Unlock()
		if w.waiting.Load() > 1 {
			runtime.Gosched()
		}
		w.mu.Lock()
		out := w.out
		w.out = w.spare[:0]
		w.mu.Unlock()
		_, err := w.conn.Write(out)
		w.mu.Lock()
		w.spare = out
		if err != nil {
			w.mu.Unlock()
			return err
		}
	}
	w.writing = false
	w.mu.Unlock()
	return nil
}

// serveMux runs each task in a goroutine, so that it does not delay others on its connection.
func serveMux(l net.Listener) error {
	return accept(l, func(c net.Conn) {
		defer c.Close()
		w := &coalescer{conn: c}
		r := bufio.NewReaderSize(c, 16*readBuffer)
		buffers := sync.Pool{New: func() any { b := make([]byte, readBuffer); return &b }}
		for {
			buf := buffers.Get().(*[]byte)
			id, body, err := readFrame(r, *buf)
			if err != nil {
				return
			}
			*buf = body[:cap(body)]
			w.waiting.Add(1)
			go func() {
				if id&acceptOnly != 0 {
					body = nil
				}
				// The reader notices a broken connection, too.
				_ = w.send(id, body)
				w.waiting.Add(-1)
				buffers.Put(buf)
			}()
		}
	})
}

// A muxClient is a connection that its callers share.
type muxClient struct {
	coalescer
	answers [maxCallers]answer
}

// An answer is where one caller waits.
type answer struct {
	body []byte
	done chan error
}

func openMux(sockets []string) (session, error) {
	clients := newConnections(sockets, workers, newMuxClient)
	return session{
		caller: func(i int, c measure.Case, payload []byte) (func() error, error) {
			if c.Tasks() > 1 {
				return nil, nil
			}
			id, want := uint32(i), payload
			if c.Kind == kindAsync {
				id, want = id|acceptOnly, nil
			}
			m, err := clients.of(i)
			return func() error { return m.call(id, payload, want) }, err
		},
		close: clients.close,
	}, nil
}

// Close ends the connection, and with it the goroutine that reads it.
func (m *muxClient) Close() error { return m.conn.Close() }

func newMuxClient(conn net.Conn) *muxClient {
	m := &muxClient{coalescer: coalescer{conn: conn}}
	for i := range m.answers {
		m.answers[i] = answer{body: make([]byte, headSize), done: make(chan error, 1)}
	}
	go m.read()
	return m
}

func (m *muxClient) call(id uint32, payload, want []byte) error {
	a := &m.answers[id&^acceptOnly]
	m.waiting.Add(1)
	defer m.waiting.Add(-1)
	if err := m.send(id, payload); err != nil {
		return err
	}
	if err := <-a.done; err != nil {
		return err
	}
	return same(a.body, want)
}

// read distributes the answers until the connection ends.
func (m *muxClient) read() {
	r := bufio.NewReaderSize(m.conn, 16*readBuffer)
	buf := make([]byte, readBuffer)
	for {
		id, body, err := readFrame(r, buf)
		if err != nil {
			for i := range m.answers {
				select {
				case m.answers[i].done <- err:
				default:
				}
			}
			return
		}
		buf = body[:cap(body)]
		a := &m.answers[id&^acceptOnly]
		a.body = append(a.body[:0], body...)
		a.done <- nil
	}
}
