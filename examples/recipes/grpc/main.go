// Command grpc answers the calls of a gRPC server in worker processes. SIGTERM ends first the
// server, then the pool.
//
//	go run ./examples/recipes/grpc
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"math/big"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/taskd-go/task"
)

var primes = task.Define("primes", func(ctx context.Context, below int64) (count int64, err error) {
	for n := range below {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if big.NewInt(n).ProbablyPrime(0) {
			count++
		}
	}
	return count, nil
})

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	pool, err := task.New(task.Config{ServerName: "grpc", TempDir: os.TempDir(), WorkerNum: 2, MaxRunningNum: 2})
	if err != nil {
		log.Fatal(err)
	}
	// A grpc.Server is no task.Server: the pool starts and ends on its own.
	if err := pool.Start(context.Background()); err != nil { // in a worker process this call does not return
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	srv := grpc.NewServer()
	srv.RegisterService(&service, counter{pool})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	srv.GracefulStop() // the calls that run need the pool
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(err, pool.Shutdown(limit)); err != nil {
		log.Fatal(err)
	}
}

// A counter is the server's side of the service Primes.
type counter struct{ pool *task.Task }

// Count is rpc Count(google.protobuf.Int64Value) returns (google.protobuf.Int64Value).
func (c counter) Count(ctx context.Context, in *wrapperspb.Int64Value) (*wrapperspb.Int64Value, error) {
	count, err := primes.Sync(ctx, c.pool, in.Value,
		task.WithWait(20*time.Second), task.WithTimeout(30*time.Second), task.WithCancel())
	switch {
	case errors.Is(err, task.ErrProcessBusy): // no slot became free, and the task did not run
		return nil, status.Error(codes.Unavailable, err.Error())
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	default:
		return wrapperspb.Int64(count), nil
	}
}

// service is what protoc would generate for Primes.
var service = grpc.ServiceDesc{
	ServiceName: "Primes",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Count",
		Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.Int64Value)
			if err := decode(in); err != nil {
				return nil, err
			}
			return srv.(counter).Count(ctx, in)
		},
	}},
}
