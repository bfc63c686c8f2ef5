package queue

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
)

// A gate is a Unix socket at which a process reports that it is at the step, and waits for a word
// to go on. The gate holds the first process only.
type gate struct {
	listener net.Listener
	first    chan *waiter
	once     sync.Once
}

// A waiter is a process that waits at the gate.
type waiter struct {
	arrival
	conn net.Conn
}

// An arrival is what a process reports about itself.
type arrival struct {
	Owner string // the worker's name in this workload
	PID   int
}

// The words that let a process go on.
const (
	wordGo   = "go"
	wordLost = "lost" // go on, as if the database's answer had not arrived
)

func newGate(path string) (*gate, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	g := &gate{listener: l, first: make(chan *waiter, 1)}
	go g.serve()
	return g, nil
}

func (g *gate) serve() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		go g.receive(&waiter{conn: conn})
	}
}

func (g *gate) receive(w *waiter) {
	if json.NewDecoder(w.conn).Decode(&w.arrival) != nil {
		w.conn.Close()
		return
	}
	held := false
	g.once.Do(func() {
		g.first <- w
		held = true
	})
	if !held {
		w.release(wordGo)
	}
}

// release lets the process go on. It does nothing if the process was killed.
func (w *waiter) release(word string) {
	_, _ = io.WriteString(w.conn, word)
	w.conn.Close()
}

func (g *gate) close() error { return g.listener.Close() }

// waitAtGate reports to the gate at path and waits for its word. It returns at once if the gate is
// closed.
func waitAtGate(path string, a arrival) (word string) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return wordGo
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(a); err != nil {
		return wordGo
	}
	said, err := io.ReadAll(conn)
	if err != nil {
		return wordGo
	}
	return string(said)
}
