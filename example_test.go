package task_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/taskd-go/task"
)

// The workers of these examples are the test binary itself: it becomes a worker here.
func TestMain(m *testing.M) {
	task.RunIfWorker()
	os.Exit(m.Run())
}

// Greet is a task. Its exported fields are its arguments.
type Greet struct{ Name string }

// Run runs in a worker process.
func (g *Greet) Run(context.Context, task.Info) (any, error) { return "hello " + g.Name, nil }

// Slow takes its time.
type Slow struct{ For time.Duration }

// Run ends early when its context does.
func (s Slow) Run(ctx context.Context, _ task.Info) (any, error) {
	select {
	case <-ctx.Done():
	case <-time.After(s.For):
	}
	return nil, ctx.Err()
}

func init() {
	task.RegisterName("example.greet", &Greet{})
	task.Register(Slow{})
}

// double is a typed task, made of a function.
var double = task.Define("example.double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })

// startExample starts a small pool for an example. A program of its own would
// set ServerName and TempDir to what suits it.
func startExample() (*task.Task, func()) {
	dir, err := os.MkdirTemp("/tmp", "example")
	if err != nil {
		panic(err)
	}
	pool, err := task.New(task.Config{WorkerNum: 2, ServerName: "example", TempDir: dir})
	if err != nil {
		panic(err)
	}
	if err := pool.Start(context.Background()); err != nil {
		panic(err)
	}
	return pool, func() {
		if err := pool.Shutdown(context.Background()); err != nil {
			fmt.Println(err)
		}
		os.RemoveAll(dir)
	}
}

// A program embeds a pool and waits for a task's result.
func ExampleTask_Sync() {
	pool, end := startExample()
	defer end()
	s, err := task.As[string](pool.Sync(context.Background(), &Greet{Name: "you"}))
	fmt.Println(s, err)
	// Output: hello you <nil>
}

// Async returns when a worker has accepted the task; Status shows the load.
func ExampleTask_Async() {
	pool, end := startExample()
	defer end()
	id, err := pool.Async(context.Background(), &Greet{Name: "you"})
	fmt.Println(id > 0, err)
	for _, w := range pool.Status() {
		fmt.Println(w.Index, w.Accepting)
	}
	// Output:
	// true <nil>
	// 0 true
	// 1 true
}

// Define registers a function and gives it typed calls.
func ExampleDefine() {
	pool, end := startExample()
	defer end()
	n, err := double.Sync(context.Background(), pool, 21)
	fmt.Println(n, err)
	// Output: 42 <nil>
}

// A call that failed says what is known of its task.
func ExampleError() {
	pool, end := startExample()
	defer end()
	_, err := pool.Sync(context.Background(), Slow{For: 2 * time.Second}, task.WithTimeout(time.Second))
	var e *task.Error
	if errors.As(err, &e) {
		fmt.Println(int(e.Status), e.Delivery)
	}
	_, err = pool.Sync(context.Background(), task.Named("nobody", nil))
	if errors.As(err, &e) {
		fmt.Println(int(e.Status), e.Delivery)
	}
	// Output:
	// -7 may have run
	// -4 not run
}

// Shutdown lets what is running finish.
func ExampleTask_Shutdown() {
	pool, end := startExample()
	defer end()
	if _, err := pool.Async(context.Background(), Slow{For: 10 * time.Millisecond}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(pool.Shutdown(context.Background()))
	_, err := pool.Sync(context.Background(), &Greet{Name: "you"})
	fmt.Println(errors.Is(err, task.ErrClosed))
	// Output:
	// <nil>
	// true
}

// Another process of the same user calls the pool by its name.
func ExampleDial() {
	pool, end := startExample()
	defer end()
	client, err := task.Dial(context.Background(), task.Config{
		TempDir:    pool.Config().TempDir,
		ServerName: pool.Config().ServerName,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	s, err := task.As[string](client.Sync(context.Background(), task.Named("example.greet", map[string]any{"Name": "you"})))
	fmt.Println(s, err)
	// Output: hello you <nil>
}
