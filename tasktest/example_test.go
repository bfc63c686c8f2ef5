package tasktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/tasktest"
)

// Charge is a program's task, and Bill the code that calls it.
type Charge struct{ Cents int }

func (c Charge) Run(context.Context, task.Info) (any, error) { return c.Cents, nil }

// Bill charges again only if the first charge has certainly not been made.
func Bill(ctx context.Context, pool task.Caller, cents int) error {
	_, err := pool.Sync(ctx, Charge{cents}, task.WithWait(time.Second))
	var e *task.Error
	if errors.As(err, &e) && e.Delivery == task.NotRun {
		_, err = pool.Sync(ctx, Charge{cents}, task.WithWait(time.Second))
	}
	return err
}

func ExampleNew() {
	task.RegisterName("example.charge", Charge{}) // the program does it in an init function
	test := func(t testing.TB) {                  // func TestBill(t *testing.T)
		pool := tasktest.New(t, task.Config{WorkerNum: 1})

		pool.Fail(tasktest.DieBeforeAccepting, "example.charge")
		fmt.Println("died before:", Bill(t.Context(), pool, 100))

		pool.Fail(tasktest.DieAfterAccepting, "example.charge")
		fmt.Println("died after:", errors.Is(Bill(t.Context(), pool, 100), task.ErrSockTimeout))

		s := pool.Status()[0]
		fmt.Println("charged:", s.Success, "lost:", s.Lost)
	}
	run(test)
	// Output:
	// died before: <nil>
	// died after: true
	// charged: 1 lost: 1
}

// half is a task of a program under test.
var half = task.Define("example.half", func(_ context.Context, n int) (int, error) {
	if n%2 != 0 {
		return 0, fmt.Errorf("%d is odd", n)
	}
	return n / 2, nil
})

// Start serves a program that is no test, or a test of a pool that does not start.
func ExampleStart() {
	pool, err := tasktest.Start(task.Config{WorkerNum: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = pool.Shutdown(context.Background()) }()
	n, err := half.Sync(context.Background(), pool, 42)
	fmt.Println(n, err)
	_, err = tasktest.Start(task.Config{WorkerNum: -1})
	fmt.Println(err)
	// Output:
	// 21 <nil>
	// task: Config.WorkerNum is -1: it must be from 1 to 512
}
