package pool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

func TestWhatIsNoTaskIsRefusedAtTheCall(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1})
	before := p.still()
	var none *Greet
	var undefined task.Func[int, int]
	var noContext context.Context
	_, undefinedErr := undefined.Sync(t.Context(), p, 1)
	_, manyErrs := undefined.SyncMany(t.Context(), p, []int{1})
	sync := func(r task.Runner, opts ...task.CallOption) error {
		_, err := p.Sync(t.Context(), r, opts...)
		return err
	}
	_, noContextErr := p.Sync(noContext, Echo{1})
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":             {sync(nil), "nil is not a task"},
		"a nil pointer":   {sync(none), "nil *pool_test.Greet is not a task"},
		"one of many":     {p.AsyncMany(t.Context(), []task.Runner{none})[0].Err, "nil *pool_test.Greet is not a task"},
		"no name":         {sync(task.Named("", nil)), "the task has no name; a Func is made with Define"},
		"a zero Func":     {undefinedErr, "the task has no name; a Func is made with Define"},
		"many of it":      {manyErrs[0], "the task has no name; a Func is made with Define"},
		"no context":      {noContextErr, "the context is nil"},
		"many without it": {p.SyncMany(noContext, []task.Runner{Echo{1}})[0].Err, "the context is nil"},
		"soft above hard": {sync(Echo{1}, task.WithTimeLimit(2, 1)), "WithTimeLimit(2ns, 1ns): the soft limit must be below the hard one"},
	} {
		t.Run(name, func(t *testing.T) {
			e := callError(t, c.err)
			assert.Equal(t, task.ErrIllegalPackage, e.Status)
			assert.Equal(t, task.NotRun, e.Delivery)
			assert.Equal(t, c.want, e.Message)
		})
	}
	assert.Equal(t, before, p.still(), "nothing was sent")
}

// callsItsOwn stands for a task that reaches for the pool of the program's main.
var callsItsOwn = task.Define("test.callsItsOwn", func(ctx context.Context, dir string) (string, error) {
	pool, err := task.New(task.Config{ServerName: "mine", TempDir: dir})
	if err != nil {
		return "", err
	}
	_, err = pool.Sync(ctx, Echo{1})
	return err.Error(), nil
})

func TestAPoolThatIsCalledInATaskSaysWhereItIs(t *testing.T) {
	parallel(t)
	p := startPool(t, task.Config{WorkerNum: 1, ServerName: "p"})
	said, err := callsItsOwn.Sync(t.Context(), p, p.dir)
	require.NoError(t, err)
	assert.Contains(t, said, "this process is a worker of pool p, in which the pool mine is not started")
}
