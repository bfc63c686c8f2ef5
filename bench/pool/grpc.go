package main

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/taskd-go/task/bench/internal/measure"
)

// registerGRPC describes the service to gRPC, as its generated code would.
func registerGRPC(s *grpc.Server) {
	desc := grpc.ServiceDesc{ServiceName: protoService, HandlerType: (*any)(nil)}
	for _, name := range []string{methodEcho, methodAccept} {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				var in wrapperspb.BytesValue
				if err := decode(&in); err != nil {
					return nil, err
				}
				return protoAnswer(name, &in), nil
			},
		})
	}
	s.RegisterService(&desc, struct{}{})
}

func grpcCall(conn *grpc.ClientConn, c measure.Case, payload []byte) func() error {
	return protoCall(c, payload, func(method string, in, out *wrapperspb.BytesValue) error {
		return conn.Invoke(context.Background(), "/"+protoService+"/"+method, in, out)
	})
}

func serveGRPC(l net.Listener) error {
	s := grpc.NewServer()
	registerGRPC(s)
	return s.Serve(l)
}

func openGRPC(sockets []string) (session, error) {
	var conns []*grpc.ClientConn
	for _, socket := range sockets {
		conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return session{}, err
		}
		conns = append(conns, conn)
	}
	return session{
		caller: func(i int, c measure.Case, payload []byte) (func() error, error) {
			return grpcCall(conns[i%len(conns)], c, payload), nil
		},
		close: func() error {
			var errs []error
			for _, conn := range conns {
				errs = append(errs, conn.Close())
			}
			return errors.Join(errs...)
		},
	}, nil
}
