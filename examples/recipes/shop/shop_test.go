package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/programtest"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestJobsOfTheDocumentStandHere(t *testing.T) {
	programtest.InFiles(t, "../../../docs/jobs.md", "jobs.go", "main.go", "pool.go", "shop_test.go")
}

// Jobs run at once and in no order, so that the steps are sorted.
func TestShop(t *testing.T) {
	code, stdout, stderr := programtest.Start(t, t.TempDir(), nil).Wait()
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	slices.Sort(lines)
	assert.Equal(t, []string{
		"dead: order.invoice, failed, attempts 3: the mail server is down",
		"dead: order.receipt, failed, attempts 1: there is no such order",
		"invoice 3 is dead: the mail server is down",
		"invoice for order 1",
		"invoice for order 3",
		"pushed once: true",
		"receipt for order 1",
		"receipt for order 2",
		"replayed: 1",
		"shipped order 1",
		"thumbnail of cat.png",
	}, lines)
}

func TestReceiptIsSentOrDead(t *testing.T) {
	handlers, err := job.NewRegistry(queue.HandlerFor[Receipt]())
	require.NoError(t, err)
	q := queue.NewSync(handlers)

	_, err = q.Push(t.Context(), Receipt{OrderID: 7})
	require.NoError(t, err)

	_, err = q.Push(t.Context(), Receipt{OrderID: -1})
	var dead *job.DeadError
	require.ErrorAs(t, err, &dead)
	assert.Equal(t, job.ReasonFailed, dead.Reason)
}
