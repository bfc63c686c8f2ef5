package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

// A shop has the state that the handlers share.
type shop struct {
	store    *middleware.Memory
	diskFull atomic.Bool

	importing chan struct{} // receives when the import of supplier 7 begins
	imported  chan struct{} // closed when that import may end
	slow      atomic.Bool   // supplier 8 does not answer
}

func newShop() *shop {
	s := &shop{store: middleware.NewMemory(nil), importing: make(chan struct{}, 1), imported: make(chan struct{})}
	s.slow.Store(true)
	return s
}

// notifyCustomer recognises a second run of the same job by the key in meta.
func (s *shop) notifyCustomer() job.Handler {
	type order struct {
		OrderID int64 `json:"orderId"`
	}
	var notified sync.Map
	return job.Typed("order.paid.notify", func(_ context.Context, o order, e job.Envelope) job.Result {
		if o.OrderID == 0 {
			return job.Fail(errors.New("no order id"))
		}
		if _, done := notified.LoadOrStore(e.MetaString("idempotencyKey", e.JobID), true); done {
			return job.Discard("the customer knows")
		}
		return job.Success()
	})
}

// importSupplier has three layers around it, the first outermost.
func (s *shop) importSupplier() job.Handler {
	type supplier struct {
		ID int `json:"supplier_id"`
	}
	h := job.Typed("supplier.import", func(ctx context.Context, p supplier, _ job.Envelope) job.Result {
		switch {
		case p.ID == 7:
			s.importing <- struct{}{}
			<-s.imported
			return job.Success()
		case p.ID == 8 && s.slow.Swap(false):
			<-ctx.Done()
		}
		return job.FromError(ctx.Err())
	})
	return job.With(h,
		middleware.Timeout(100*time.Millisecond),
		middleware.WithoutOverlapping(s.store, middleware.Key("import_supplier_{supplier_id}"),
			middleware.Lease(10*time.Second)),
		middleware.RateLimited(s.store, 3, 2*time.Second),
	)
}

// exportReport fails while the disk is full.
func (s *shop) exportReport() job.Handler {
	type report struct{ Month string }
	return job.Typed("report.export", func(_ context.Context, r report, _ job.Envelope) job.Result {
		if s.diskFull.Load() {
			return job.Retry(fmt.Errorf("report %s: no space left", r.Month))
		}
		return job.Success()
	})
}

// logging is a layer that writes the result of each delivery.
func logging(out io.Writer) job.Middleware {
	var mu sync.Mutex
	return func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			result := next(ctx, e)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "  %s %s, attempt %d: %s", e.JobType, e.Payload, e.Attempt, result.Kind())
			if err := result.Err(); err != nil {
				fmt.Fprintf(out, " (%v)", err)
			}
			fmt.Fprintln(out)
			return result
		}
	}
}
