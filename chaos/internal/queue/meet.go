package queue

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
)

// A meeting is where a process tells that it is at a step, and waits to be let go. Only the first one is held.
type meeting struct {
	listener net.Listener
	first    chan *guest
	once     sync.Once
}

// A guest is a process that waits.
type guest struct {
	arrival
	conn net.Conn
}

// An arrival is what a process says of itself.
type arrival struct {
	Owner string // the worker's name in this run
	PID   int
}

// The words that let a process go.
const (
	wordGo   = "go"
	wordLost = "lost" // … and the answer that it has is to count as lost
)

func newMeeting(path string) (*meeting, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("meeting: %w", err)
	}
	m := &meeting{listener: l, first: make(chan *guest, 1)}
	go m.serve()
	return m, nil
}

func (m *meeting) serve() {
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return
		}
		go m.receive(&guest{conn: conn})
	}
}

func (m *meeting) receive(g *guest) {
	if json.NewDecoder(g.conn).Decode(&g.arrival) != nil {
		g.conn.Close()
		return
	}
	held := false
	m.once.Do(func() {
		m.first <- g
		held = true
	})
	if !held {
		g.dismiss(wordGo)
	}
}

// dismiss lets a process go; one that was killed does not hear it.
func (g *guest) dismiss(word string) {
	_, _ = io.WriteString(g.conn, word)
	g.conn.Close()
}

func (m *meeting) close() error { return m.listener.Close() }

// meet tells the meeting at path and waits. A meeting that is over holds nobody.
func meet(path string, a arrival) (word string) {
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
