package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/backend"
)

type greet struct{ Name string }

func (greet) JobType() string { return "greet" }
func (g *greet) Handle(context.Context) error {
	if g.Name == "" {
		return errors.New("nobody to greet")
	}
	return nil
}

func TestConfigChoosesTheDriver(t *testing.T) {
	reg, err := job.NewRegistry(queue.HandlerFor[*greet]())
	require.NoError(t, err)
	asked := ""
	connect := func(c queue.Config) (backend.Backend, error) {
		asked = c.Connection
		return nil, errors.New("down")
	}
	env := map[string]string{"QUEUE_DRIVER": "sync", "QUEUE_NAME": "mail", "QUEUE_DB_CONNECTION": "second"}
	c, err := queue.ReadConfig(map[string]any{
		"driver":  "database",
		"drivers": map[string]any{"database": map[string]any{"connection": "first", "jobs_table": "j", "failed_table": "f"}},
	}, func(name string) string { return env[name] })
	require.NoError(t, err)
	assert.Equal(t, queue.Config{Driver: "sync", Queue: "mail", Connection: "second", JobsTable: "j", FailedTable: "f"}, c)

	q, err := c.Open(connect, reg)
	require.NoError(t, err)
	_, err = q.Push(t.Context(), &greet{Name: "Ada"})
	require.NoError(t, err)
	assert.Empty(t, asked)

	c.Driver = queue.DriverDatabase
	_, err = c.Open(connect, reg)
	require.ErrorContains(t, err, "down")
	assert.Equal(t, "second", asked)

	c.Driver = "rabbit"
	_, err = c.Open(connect, reg)
	require.ErrorContains(t, err, "must be database or sync")

	c, err = queue.ReadConfig(nil, nil)
	require.NoError(t, err)
	assert.Equal(t, queue.Config{Driver: "database", Queue: "default"}, c)
	for _, wrong := range []map[string]any{{"driver": 7}, {"drivers": "database"},
		{"drivers": map[string]any{"database": "main"}}} {
		_, err = queue.ReadConfig(wrong, nil)
		var config *queue.ConfigError
		require.ErrorAs(t, err, &config, "%v", wrong)
	}
}

func TestTheSyncDriverRunsAJobOfAPointerTypeAndReturnsItsLastError(t *testing.T) {
	reg, err := job.NewRegistry(queue.HandlerFor[*greet]())
	require.NoError(t, err)
	q := queue.NewSync(reg, queue.SyncRunner(&job.Runner{Timeout: time.Minute}))
	_, err = q.Push(t.Context(), &greet{}, queue.Tries(2))
	var dead *job.DeadError
	require.ErrorAs(t, err, &dead)
	assert.EqualError(t, err, "nobody to greet")

	_, err = q.PushEnvelope(t.Context(), job.Envelope{JobType: "unknown"})
	require.ErrorAs(t, err, &dead)
	assert.Equal(t, job.ReasonUnregistered, dead.Reason)
}

func TestTheSyncDriverRefusesWhatNeedsAStore(t *testing.T) {
	q := queue.NewSync(nil)
	ctx := t.Context()
	_, inspect := q.Inspect(ctx, "1")
	_, all := q.RetryAll(ctx, queue.Filter{})
	_, worked := queue.NewWorker(q, nil).ProcessOne(ctx)
	for name, err := range map[string]error{
		"Inspect": inspect, "RetryAll": all, "Retry": q.Retry(ctx, "1"), "Cancel": q.Cancel(ctx, "1"),
		"Pause": q.Pause(ctx, ""), "Resume": q.Resume(ctx, ""), "Restart": q.Restart(ctx), "worker": worked,
	} {
		assert.ErrorIs(t, err, queue.ErrUnsupported, name)
		assert.ErrorContains(t, err, "sync", name)
	}
	n, err := q.Size(ctx, "")
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestAQueueNameThatNoWorkerCanServeIsRefused_Found80(t *testing.T) {
	reg, err := job.NewRegistry(queue.HandlerFor[*greet]())
	require.NoError(t, err)
	q := queue.NewSync(reg)
	var config *queue.ConfigError
	for _, name := range []string{"mail:high", "a,b", " x", "x ", "mail:3", "a\nb", "a\x00", "a\x7f", "\xff", "a\u0085b",
		strings.Repeat("q", 192)} {
		_, err := q.Push(t.Context(), &greet{Name: "Ada"}, queue.On(name))
		assert.ErrorAs(t, err, &config, "push on %q", name)
		_, err = q.PushMany(t.Context(), []queue.Job{&greet{Name: "Ada"}}, queue.On(name))
		assert.ErrorAs(t, err, &config, "push many on %q", name)
		named := queue.NewSync(reg, queue.DefaultQueue(name))
		_, err = named.Push(t.Context(), &greet{Name: "Ada"})
		assert.ErrorAs(t, err, &config, "push on the default queue %q", name)
	}
	for _, name := range []string{"mail", "a b", "Grüße", strings.Repeat("q", 191)} {
		_, err := q.Push(t.Context(), &greet{Name: "Ada"}, queue.On(name))
		assert.NoError(t, err, name)
	}
}
