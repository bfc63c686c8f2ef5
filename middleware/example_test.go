package middleware_test

import (
	"context"
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

// An import that may take five minutes, never runs beside another one of the same supplier, and
// starts at most five times a minute over all suppliers.
func Example() {
	store := middleware.NewMemory(nil)
	imports := job.With(
		job.Func("import_products", func(_ context.Context, e job.Envelope) job.Result {
			fmt.Println("import", string(e.Payload))
			return job.Success()
		}),
		middleware.Timeout(5*time.Minute),
		middleware.WithoutOverlapping(store, middleware.Key("import_supplier_{supplier_id}"), middleware.Lease(10*time.Minute)),
		middleware.RateLimited(store, 5, time.Minute),
	)

	e, err := job.New("import_products", map[string]any{"supplier_id": 7}, nil, job.DefaultRetryPolicy())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(imports.Handle(ctx, e).Kind())

	// Another worker imports from the same supplier.
	_, _, _ = store.Acquire(ctx, "overlap:import_supplier_7", "another worker", 1, time.Minute)
	r := imports.Handle(ctx, e)
	fmt.Println(r.Kind(), "because", r.Err())

	// Output:
	// import {"supplier_id":7}
	// success
	// skip because "overlap:import_supplier_7" is held
}
