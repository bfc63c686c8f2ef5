package main

import (
	"errors"
	"io"
	"net"
	"sync"
)

// connections are the clients of one contender. Caller i uses client i % limit, so more callers
// than limit share clients. A client is opened at its first use. Clients go to the sockets in turn.
type connections[T io.Closer] struct {
	sockets []string
	limit   int
	client  func(net.Conn) T

	mu   sync.Mutex
	open map[int]T
}

func newConnections[T io.Closer](sockets []string, limit int, client func(net.Conn) T) *connections[T] {
	return &connections[T]{sockets: sockets, limit: limit, client: client, open: map[int]T{}}
}

func (p *connections[T]) of(caller int) (T, error) {
	i := caller % p.limit
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.open[i]; ok {
		return c, nil
	}
	conn, err := net.Dial("unix", p.sockets[i%len(p.sockets)])
	if err != nil {
		var none T
		return none, err
	}
	p.open[i] = p.client(conn)
	return p.open[i], nil
}

func (p *connections[T]) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, c := range p.open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
