package main

import (
	"net"
	"net/rpc"

	"github.com/taskd-go/task/bench/internal/measure"
)

// RPC is the service that net/rpc and the net/rpc form of go-plugin serve.
type RPC struct{}

// Echo answers with the payload.
func (RPC) Echo(payload []byte, answer *[]byte) error {
	*answer = payload
	return nil
}

// Accept answers without the payload.
func (RPC) Accept(_ []byte, accepted *bool) error {
	*accepted = true
	return nil
}

func serveNetRPC(l net.Listener) error {
	s := rpc.NewServer()
	if err := s.Register(RPC{}); err != nil {
		return err
	}
	return accept(l, func(c net.Conn) { s.ServeConn(c) })
}

func openNetRPC(sockets []string) (session, error) {
	clients := newConnections(sockets, workers, func(c net.Conn) *rpc.Client { return rpc.NewClient(c) })
	return session{
		caller: func(i int, c measure.Case, payload []byte) (func() error, error) {
			client, err := clients.of(i)
			return rpcCall(client, "RPC", c, payload), err
		},
		close: clients.close,
	}, nil
}

func rpcCall(client *rpc.Client, service string, c measure.Case, payload []byte) func() error {
	switch c.Kind {
	case kindSync:
		return func() error {
			var got []byte
			if err := client.Call(service+".Echo", payload, &got); err != nil {
				return err
			}
			return same(got, payload)
		}
	case kindAsync:
		return func() error {
			var accepted bool
			return client.Call(service+".Accept", payload, &accepted)
		}
	case kindSyncMany:
		return func() error {
			done := make(chan *rpc.Call, batchSize)
			for range batchSize {
				client.Go(service+".Echo", payload, new([]byte), done)
			}
			for range batchSize {
				c := <-done
				if c.Error != nil {
					return c.Error
				}
				if err := same(*c.Reply.(*[]byte), payload); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		return nil
	}
}
