package task_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task"
)

type (
	hidden   struct{ name string }
	function func()
)

func (h hidden) Run(context.Context, task.Info) (any, error) { return h.name, nil }
func (function) Run(context.Context, task.Info) (any, error) { return nil, nil }

func TestWhatCannotTravelIsNotRegistered(t *testing.T) {
	const unexported = "none of its fields is exported"
	for name, c := range map[string]struct {
		register func()
		want     string
	}{
		"hidden fields":        {func() { task.Register(hidden{}) }, unexported},
		"pointer to them":      {func() { task.RegisterName("test.hidden", &hidden{}) }, unexported},
		"a function":           {func() { task.Register(function(nil)) }, "msgpack has no func"},
		"Named":                {func() { task.Register(task.Named("example.greet", nil)) }, "by a Named"},
		"Named under a name":   {func() { task.RegisterName("x", task.Named("example.greet", nil)) }, "by a Named"},
		"no function":          {func() { task.Define[int, int]("test.none", nil) }, "the function is nil"},
		"In hides its fields":  {func() { task.Define("test.in", func(context.Context, *sync.Mutex) (int, error) { return 0, nil }) }, unexported},
		"Out is not for wires": {func() { task.Define("test.out", func(context.Context, int) (chan int, error) { return nil, nil }) }, "msgpack has no chan"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { assert.Contains(t, recover(), c.want) }()
			c.register()
		})
	}
}

func TestRegisterPanicsOnASecondType(t *testing.T) {
	assert.Panics(t, func() { task.RegisterName("example.greet", Slow{}) })
	assert.NotPanics(t, func() { task.RegisterName("example.greet", &Greet{}); task.Register(&Slow{}) })
	assert.Panics(t, func() { task.Define("example.double", func(context.Context, int) (int, error) { return 0, nil }) })
	assert.Panics(t, func() { task.RegisterName("", Slow{}) })
	assert.Panics(t, func() { task.Register(nil) })
	assert.False(t, task.IsWorker())
	assert.NotEmpty(t, os.Args)
}
