// Program versions runs a pool in the folder that its argument names. Its one
// task says of which version the program is.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/taskd-go/task"
)

var version string // set by the linker

type Version struct{}

func (Version) Run(context.Context, task.Info) (any, error) { return version, nil }

func main() {
	task.Register(Version{})
	pool, err := task.New(task.Config{TempDir: os.Args[1], ServerName: "v", WorkerNum: 1})
	if err == nil {
		err = pool.Start(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer pool.Shutdown(context.Background())
	fmt.Println(ask(pool))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println(ask(pool)) {
		switch in.Text() {
		case "kill":
			kill(pool)
		case "reload":
			if err := pool.Reload(context.Background()); err != nil {
				fmt.Println(err)
			}
		}
	}
}

// kill kills the worker and waits for its successor.
func kill(pool *task.Task) {
	old := pool.Status()[0].PID
	syscall.Kill(old, syscall.SIGKILL)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s := pool.Status()[0]; s.PID != old && s.Accepting {
			return
		}
	}
}

func ask(pool *task.Task) string {
	v, err := task.As[string](pool.Sync(context.Background(), Version{}))
	if err != nil {
		return err.Error()
	}
	return v
}
