package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taskd-go/task"
)

// builtIn names the tasks of a pool of taskd.
var builtIn = []string{"digest", "echo", "exec", "sleep"}

// defineTasks registers the named built-in tasks, of which exec runs what allowed
// lets through. Once in a process.
func defineTasks(which []string, allowed patterns) error {
	for _, name := range which {
		switch name {
		case "digest":
			defineDigest()
		case "echo":
			task.Define(name, echo)
		case "exec":
			task.Define(name, allowed.run)
		case "sleep":
			task.Define(name, sleep)
		default:
			return usagef("no built-in task is named %q; there are %s", name, strings.Join(builtIn, ", "))
		}
	}
	return nil
}

// echo returns what it was given.
func echo(_ context.Context, v any) (any, error) { return v, nil }

// A nap is what the task sleep takes.
type nap struct {
	For string `msgpack:"for"` // a duration such as "1.5s"
}

// sleep waits, or until its context ends.
func sleep(ctx context.Context, n nap) (string, error) {
	d, err := time.ParseDuration(n.For)
	if err != nil {
		return "", fmt.Errorf(`want {"for": DURATION}, such as {"for": "1.5s"}: %w`, err)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return "slept " + d.String(), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
