package main

import (
	"context"
	"net"

	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/taskd-go/task/bench/internal/measure"
)

func serveTTRPC(l net.Listener) error {
	s, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	methods := map[string]ttrpc.Method{}
	for _, name := range []string{methodEcho, methodAccept} {
		methods[name] = func(_ context.Context, unmarshal func(any) error) (any, error) {
			var in wrapperspb.BytesValue
			if err := unmarshal(&in); err != nil {
				return nil, err
			}
			return protoAnswer(name, &in), nil
		}
	}
	s.RegisterService(protoService, &ttrpc.ServiceDesc{Methods: methods})
	return s.Serve(context.Background(), l)
}

func openTTRPC(sockets []string) (session, error) {
	clients := newConnections(sockets, workers, func(c net.Conn) *ttrpc.Client { return ttrpc.NewClient(c) })
	return session{
		caller: func(i int, c measure.Case, payload []byte) (func() error, error) {
			client, err := clients.of(i)
			return protoCall(c, payload, func(method string, in, out *wrapperspb.BytesValue) error {
				return client.Call(context.Background(), protoService, method, in, out)
			}), err
		},
		close: clients.close,
	}, nil
}
