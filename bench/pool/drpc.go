package main

import (
	"context"
	"net"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmux"
	"storj.io/drpc/drpcserver"

	"github.com/taskd-go/task/bench/internal/measure"
)

// drpcProto encodes protobuf as drpc's generated code does.
type drpcProto struct{}

// Marshal encodes a protobuf message.
func (drpcProto) Marshal(m drpc.Message) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }

// Unmarshal decodes a protobuf message.
func (drpcProto) Unmarshal(b []byte, m drpc.Message) error {
	return proto.Unmarshal(b, m.(proto.Message))
}

// drpcService describes the service to drpc, as its generated code would.
type drpcService struct{}

func (drpcService) answer(context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	return nil, nil
}

// NumMethods returns how many methods there are.
func (drpcService) NumMethods() int { return 2 }

// Method describes the nth method.
func (drpcService) Method(n int) (string, drpc.Encoding, drpc.Receiver, any, bool) {
	name := []string{methodEcho, methodAccept}[n]
	receive := func(_ any, _ context.Context, in, _ any) (drpc.Message, error) {
		return protoAnswer(name, in.(*wrapperspb.BytesValue)), nil
	}
	return drpcName(name), drpcProto{}, receive, drpcService.answer, true
}

func drpcName(method string) string { return "/" + protoService + "/" + method }

func serveDRPC(l net.Listener) error {
	mux := drpcmux.New()
	if err := mux.Register(drpcService{}, drpcService{}); err != nil {
		return err
	}
	return drpcserver.New(mux).Serve(context.Background(), l)
}

// openDRPC gives each caller a connection, because drpc allows one call at a time on each.
func openDRPC(sockets []string) (session, error) {
	conns := newConnections(sockets, maxCallers, func(c net.Conn) *drpcconn.Conn { return drpcconn.New(c) })
	return session{
		caller: func(i int, c measure.Case, payload []byte) (func() error, error) {
			conn, err := conns.of(i)
			return protoCall(c, payload, func(method string, in, out *wrapperspb.BytesValue) error {
				return conn.Invoke(context.Background(), drpcName(method), drpcProto{}, in, out)
			}), err
		},
		close: conns.close,
	}, nil
}
