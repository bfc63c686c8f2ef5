package conformance

import (
	"context"
	"testing"

	"github.com/taskd-go/task/queue/backend"
	"github.com/taskd-go/task/queue/queuetest"
)

// A plain store can push, receive, extend and complete, and nothing else.
type plain struct{ store backend.Backend }

func (p plain) Name() string                { return "plain" }
func (plain) Can() (c backend.Capabilities) { return c }

func (p plain) Push(ctx context.Context, messages []backend.Message) []backend.Pushed {
	return p.store.Push(ctx, messages)
}

func (p plain) Open(ctx context.Context, s backend.Session) (backend.Consumer, error) {
	c, err := p.store.Open(ctx, s)
	return struct{ backend.Consumer }{c}, err
}

// TestAPlainStoreRefusesWhatItCannotDo runs the suite over a store without capabilities.
func TestAPlainStoreRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	h := harnessOf(db, newClock(t, db))
	open := h.Open
	h.Open = func(t testing.TB, how queuetest.Opening) backend.Backend { return plain{open(t, how)} }
	queuetest.Run(t, h)
}
