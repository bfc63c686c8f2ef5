// Command runner runs jobs of a transport of its own, as a program does that takes messages from a
// broker: envelopes, three handlers, layers around them, retries, a dead letter and its replay. It
// ends after about two seconds.
//
//	go run ./examples/runner
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/taskd-go/task/job"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// orderPaid is a message as another program would send it.
const orderPaid = `{"v":1,"jobId":"job_20260712_ab12cd34ef56","jobType":"order.paid.notify","payload":{"orderId":10001},
	"meta":{"tenantId":"t1","idempotencyKey":"order:10001:paid-notify"},"attempt":1,"maxAttempts":5,"createdAt":1720764000}`

func run(ctx context.Context, out io.Writer) error {
	cfg := job.DefaultConfig()
	cfg.MaxAttempts = 3
	cfg.BaseDelay = 10 * time.Millisecond
	cfg.Timeout = 5 * time.Second
	cfg.DeadLetter.Driver = job.DriverMemory

	shop := newShop()
	parts, err := cfg.Build(nil, shop.notifyCustomer(), shop.importSupplier(), shop.exportReport())
	if err != nil {
		return err
	}
	defer parts.Close()
	parts.Runner.Middleware = []job.Middleware{logging(out)}
	parts.Runner.Logger = slog.New(slog.DiscardHandler) // the layer above writes what is of interest here

	q := &queue{parts: parts}
	publisher := parts.Publisher(q.publish)
	for _, chapter := range []struct {
		title string
		tell  func(context.Context, *queue, *job.Publisher, io.Writer) error
	}{
		{"An order is paid", shop.payOrder},
		{"Suppliers are imported: each by one worker, 100 ms at most, 3 in 2 s", shop.importSuppliers},
		{"A report meets a full disk", shop.exportReports},
	} {
		fmt.Fprintln(out, chapter.title)
		if err := chapter.tell(ctx, q, publisher, out); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) payOrder(ctx context.Context, q *queue, publisher *job.Publisher, _ io.Writer) error {
	e, err := job.Decode([]byte(orderPaid))
	if err != nil {
		return err
	}
	if _, err := publisher.DispatchEnvelope(ctx, e); err != nil {
		return err
	}
	return q.workUntilEmpty(ctx)
}

func (s *shop) importSuppliers(ctx context.Context, q *queue, publisher *job.Publisher, _ io.Writer) error {
	dispatch := func(supplier int) error {
		_, err := publisher.Dispatch(ctx, "supplier.import", map[string]int{"supplier_id": supplier}, nil)
		return err
	}
	// While the import of supplier 7 runs, a second worker gets the same job.
	if err := dispatch(7); err != nil {
		return err
	}
	first := make(chan error, 1)
	go func() { first <- q.workUntilEmpty(ctx) }()
	<-s.importing
	if err := dispatch(7); err != nil {
		return err
	}
	if err := q.workUntilEmpty(ctx); err != nil {
		return err
	}
	close(s.imported)
	if err := <-first; err != nil {
		return err
	}
	// Supplier 8 is slow at first. Its second attempt is the third import of these 2 s, so supplier
	// 9 waits.
	if err := dispatch(8); err != nil {
		return err
	}
	if err := q.workUntilEmpty(ctx); err != nil {
		return err
	}
	if err := dispatch(9); err != nil {
		return err
	}
	return q.workUntilEmpty(ctx)
}

func (s *shop) exportReports(ctx context.Context, q *queue, publisher *job.Publisher, out io.Writer) error {
	s.diskFull.Store(true)
	if _, err := publisher.Dispatch(ctx, "report.export", map[string]string{"month": "2026-06"}, nil); err != nil {
		return err
	}
	if err := q.workUntilEmpty(ctx); err != nil {
		return err
	}
	letters, _, err := q.parts.DeadLetters.Page(ctx, job.DefaultQueue, "", 10)
	if err != nil {
		return err
	}
	for _, d := range letters {
		fmt.Fprintf(out, "  dead: %s, %s after %d attempts: %s\n", d.Job.JobType, d.Reason, len(d.Attempts), d.Error)
	}

	s.diskFull.Store(false)
	n, err := job.Replay(ctx, q.parts.DeadLetters, q.publish, job.Filter{Types: []string{"report.export"}, Limit: 10})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  replayed: %d\n", n)
	return q.workUntilEmpty(ctx)
}
