package main

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/taskd-go/task/examples/recipes/internal/recipetest"
	"github.com/taskd-go/task/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestServerAnswersFromThePool(t *testing.T) {
	dir, addr := programtest.ShortTempDir(t), programtest.FreeAddr(t)
	p := programtest.Start(t, dir, []string{"TMPDIR=" + dir}, "-addr", addr)
	p.WaitListening(addr)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	count := func(below int64) (int64, error) {
		var out wrapperspb.Int64Value
		err := conn.Invoke(context.Background(), "/Primes/Count", wrapperspb.Int64(below), &out)
		return out.Value, err
	}
	n, err := count(100)
	require.NoError(t, err)
	assert.EqualValues(t, 25, n)

	type answer struct {
		n   int64
		err error
	}
	answers := make(chan answer)
	go func() {
		n, err := count(50000)
		answers <- answer{n, err}
	}()
	recipetest.WaitRunning(t, dir, "grpc")
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, answer{5133, nil}, <-answers, "the call that ran when the signal came")
	code, _, stderr := p.Wait()
	assert.Zero(t, code, stderr)
}
