package task_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/taskd-go/task"
)

// untilLimit works until its context ends and returns why it ended.
var untilLimit = task.Define("example.until-limit", func(ctx context.Context, _ struct{}) (string, error) {
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), task.ErrSoftLimit) {
		return "soft limit", nil
	}
	return "", context.Cause(ctx)
})

// untilDrain works until its worker drains.
var untilDrain = task.Define("example.until-drain", func(ctx context.Context, _ struct{}) (string, error) {
	select {
	case <-task.Draining(ctx):
		return "finished early", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
})

// A call with WithWait waits for a free slot. Without it a call to a busy pool fails at once.
func ExampleWithWait() {
	pool, end := startExample()
	defer end()
	n, err := double.Sync(context.Background(), pool, 21, task.WithWait(time.Second))
	fmt.Println(n, err)
	// Output: 42 <nil>
}

// A task with a soft limit gets time to clean up when its context ends.
func ExampleWithTimeLimit() {
	pool, end := startExample()
	defer end()
	why, err := untilLimit.Sync(context.Background(), pool, struct{}{}, task.WithTimeLimit(10*time.Millisecond, 0))
	fmt.Println(why, err)
	// Output: soft limit <nil>
}

// A long task ends early when its worker drains.
func ExampleDraining() {
	pool, end := startExample()
	defer end()
	done := make(chan string)
	go func() {
		why, err := untilDrain.Sync(context.Background(), pool, struct{}{}, task.WithTimeout(0))
		done <- fmt.Sprint(why, " ", err)
	}()
	for pool.Status()[0].Running+pool.Status()[1].Running == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := pool.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-done)
	// Output: finished early <nil>
}

// SyncMany spreads its tasks over the workers and returns their outcomes in order.
func ExampleTask_SyncMany() {
	pool, end := startExample()
	defer end()
	for _, o := range pool.SyncMany(context.Background(), []task.Runner{
		&Greet{Name: "you"}, &Greet{Name: "me"}, task.Named("example.greet", nil),
	}) {
		fmt.Println(task.As[string](o.Result, o.Err))
	}
	// Output:
	// hello you <nil>
	// hello me <nil>
	// hello  <nil>
}

// The methods of a Func take many inputs too.
func ExampleFunc_SyncMany() {
	pool, end := startExample()
	defer end()
	outs, errs := double.SyncMany(context.Background(), pool, []int{1, 2, 3})
	fmt.Println(outs, errors.Join(errs...))
	// Output: [2 4 6] <nil>
}

// Reload replaces each worker with one of the executable that is on disk now.
func ExampleTask_Reload() {
	pool, end := startExample()
	defer end()
	fmt.Println(pool.Reload(context.Background()))
	for _, w := range pool.Status() {
		if w.Accepting {
			fmt.Println(w.Index, w.Generation > 2)
		}
	}
	// Output:
	// <nil>
	// 0 true
	// 1 true
}

// Status shows what the workers do and have done.
func ExampleTask_Status() {
	pool, end := startExample()
	defer end()
	if _, err := double.Sync(context.Background(), pool, 21); err != nil {
		fmt.Println(err)
	}
	var accepted, success uint64
	for _, w := range pool.Status() {
		accepted += w.Accepted
		success += w.Success
	}
	fmt.Println(accepted, success)
	// Output: 1 1
}

// OnEvent gets each change in the state of a worker.
func ExampleEvent() {
	dir, err := os.MkdirTemp("/tmp", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ready := make(chan task.Event, 16)
	pool, err := task.New(task.Config{
		WorkerNum:  1,
		ServerName: "example",
		TempDir:    dir,
		OnEvent: func(e task.Event) {
			if e.Kind == task.EventReady {
				ready <- e
			}
		},
	})
	if err != nil {
		panic(err)
	}
	if err := pool.Start(context.Background()); err != nil {
		panic(err)
	}
	defer func() { _ = pool.Shutdown(context.Background()) }()
	e := <-ready
	fmt.Println(e.Kind, e.Reason, e.Worker.Index, e.Worker.PID > 0)
	// Output: ready started 0 true
}
