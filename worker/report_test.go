package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/protocol"
)

// A listError cannot be compared with ==.
type listError []string

func (e listError) Error() string { return strings.Join(e, ", ") }

func TestAFailureIsOneRecord(t *testing.T) {
	type handler func(context.Context, error, Info) (any, error)
	settle := func(context.Context, error, Info) (any, error) { return "settled", nil }
	pass := func(_ context.Context, err error, _ Info) (any, error) { return nil, err }
	other := func(context.Context, error, Info) (any, error) { return nil, errors.New("other") }
	fail := func(context.Context, Info) (any, error) { return nil, listError{"a", "b"} }
	crash := func(context.Context, Info) (any, error) { panic("boom") }
	for name, c := range map[string]struct {
		run    func(context.Context, Info) (any, error)
		handle handler
		want   []string // of the one record; none: there is no record
	}{
		"an error":               {fail, nil, []string{"level=ERROR", "task failed", `err="a, b"`}},
		"an error, settled":      {fail, settle, nil},
		"an error, passed on":    {fail, pass, []string{"level=ERROR", "task failed", `err="a, b"`}},
		"an error, made another": {fail, other, []string{"level=ERROR", "err=other", `first="a, b"`}},
		"a panic":                {crash, nil, []string{"level=ERROR", "task panicked", "boom", "stack="}},
		"a panic, settled":       {crash, settle, []string{"level=WARN", "OnException returned a result", "boom", "stack="}},
		"a panic, made an error": {crash, other, []string{"level=ERROR", "task failed", "err=other", "boom", "stack="}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			r.tasks["it"] = func([]byte) (Task, error) { return &testTask{c.run, c.handle}, nil }
			r.dial().call(protocol.Package{Task: []byte("it")})
			r.still()
			log := r.log.String()
			require.Equal(t, min(len(c.want), 1), strings.Count(log, "task=it"), log)
			for _, word := range c.want {
				require.Contains(t, log, word)
			}
		})
	}
}
