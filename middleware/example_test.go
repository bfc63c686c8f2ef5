package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/middleware"
)

// succeed is a handler that reports what it runs.
func succeed(_ context.Context, e job.Envelope) job.Result {
	fmt.Println("run", string(e.Payload))
	return job.Success()
}

// handle runs one job of type t in a handler with one layer, and prints the answer.
func handle(layer middleware.Middleware, fn job.HandleFunc, payload any) {
	e, err := job.New("t", payload, nil, job.RetryPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result := job.With(job.Func("t", fn), layer).Handle(context.Background(), e)
	if result.Err() != nil {
		fmt.Println(result.Kind(), "because", result.Err())
		return
	}
	fmt.Println(result.Kind())
}

// hold takes a lock as another worker would.
func hold(store middleware.Store, key string) {
	if _, _, err := store.Acquire(context.Background(), key, "another worker", 1, time.Minute); err != nil {
		fmt.Println(err)
	}
}

// An import may take five minutes, never runs beside another one of the same supplier, and starts
// at most five times a minute over all suppliers.
func Example() {
	store := middleware.NewMemory(nil)
	imports := job.With(job.Func("import_products", succeed),
		middleware.Timeout(5*time.Minute),
		middleware.WithoutOverlapping(store, middleware.Key("import_supplier_{supplier_id}"),
			middleware.Lease(10*time.Minute)),
		middleware.RateLimited(store, 5, time.Minute),
	)

	e, err := job.New("import_products", map[string]any{"supplier_id": 7}, nil, job.DefaultRetryPolicy())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(imports.Handle(ctx, e).Kind())

	hold(store, "overlap:import_supplier_7")
	r := imports.Handle(ctx, e)
	fmt.Println(r.Kind(), "because", r.Err())
	// Output:
	// run {"supplier_id":7}
	// success
	// skip because "overlap:import_supplier_7" is held
}

// A layer of a program's own. The first of a list is the outermost: it sees the answers of the
// others.
func Example_ownLayer() {
	logged := func(next job.HandleFunc) job.HandleFunc {
		return func(ctx context.Context, e job.Envelope) job.Result {
			fmt.Println(e.JobType, "begins")
			result := next(ctx, e)
			fmt.Println(e.JobType, "ends:", result.Kind())
			return result
		}
	}
	store := middleware.NewMemory(nil)
	once := middleware.RateLimited(store, 1, time.Hour)
	report := job.Func("report", succeed)
	e, err := job.New("report", nil, nil, job.RetryPolicy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	job.With(report, logged, once).Handle(ctx, e)
	job.With(report, logged, once).Handle(ctx, e) // over the limit; the outer layer sees it
	job.With(report, once, logged).Handle(ctx, e) // over the limit; the inner layer does not run
	// Output:
	// report begins
	// run {}
	// report ends: success
	// report begins
	// report ends: defer
}

// A handler that returns when its context ends is a retry for "timeout" when its time is up.
func ExampleTimeout() {
	slow := func(ctx context.Context, _ job.Envelope) job.Result {
		<-ctx.Done()
		return job.Retry(ctx.Err())
	}
	handle(middleware.Timeout(10*time.Millisecond), slow, nil)
	// Output: retry because Job exceeded maximum execution time of 0.01 seconds.
}

// A job over the limit waits until the window opens, which costs no attempt.
func ExampleRateLimited() {
	limit := middleware.RateLimited(middleware.NewMemory(nil), 2, time.Minute)
	for n := range 3 {
		handle(limit, succeed, map[string]int{"n": n})
	}
	// Output:
	// run {"n":0}
	// success
	// run {"n":1}
	// success
	// defer because Rate limit exceeded for 't': max 2 executions per 60 seconds.
}

// After two failures the job type waits until ten minutes have passed without another one.
func ExampleThrottlesExceptions() {
	throttle := middleware.ThrottlesExceptions(middleware.NewMemory(nil), 2, 10*time.Minute)
	fail := func(context.Context, job.Envelope) job.Result { return job.Retry(errors.New("server is down")) }
	for range 3 {
		handle(throttle, fail, nil)
	}
	// Output:
	// retry because server is down
	// retry because server is down
	// defer because Too many exceptions for t (2 in 10 minutes). Throttled.
}

// One job of the type runs at a time; another one is skipped.
func ExampleUniqueJob() {
	store := middleware.NewMemory(nil)
	unique := middleware.UniqueJob(store, nil)
	handle(unique, succeed, nil)
	hold(store, "unique:t")
	handle(unique, succeed, nil)
	// Output:
	// run {}
	// success
	// skip because "unique:t" is held
}

// One job for each customer runs at a time.
func ExampleWithoutOverlapping() {
	store := middleware.NewMemory(nil)
	byCustomer := middleware.WithoutOverlapping(store, middleware.Key("customer_{customer}"))
	hold(store, "overlap:customer_7")
	handle(byCustomer, succeed, map[string]int{"customer": 7})
	handle(byCustomer, succeed, map[string]int{"customer": 8})
	// Output:
	// skip because "overlap:customer_7" is held
	// run {"customer":8}
	// success
}

// At most two jobs run at a time.
func ExampleConcurrent() {
	store := middleware.NewMemory(nil)
	two := middleware.Concurrent(store, middleware.Key("exports"), 2)
	hold(store, "concurrent:exports")
	handle(two, succeed, nil) // takes the second place, and gives it back

	beside := func(context.Context, job.Envelope) job.Result {
		handle(two, succeed, nil) // a third one while both places are taken
		return job.Success()
	}
	handle(two, beside, nil)
	// Output:
	// run {}
	// success
	// skip because "concurrent:exports" is held
	// success
}

// A key of several members holds apart what differs in any of them. A job without a key is dead.
func ExampleKey() {
	key := middleware.Key("{supplier}/{country}")
	for _, payload := range []string{`{"supplier":7,"country":"de"}`, `{"supplier":7}`} {
		fmt.Printf("%q\n", key(job.Envelope{Payload: []byte(payload)}))
	}
	// Output:
	// "\"7\"/\"de\""
	// ""
}

// AsFailure makes a refusal a failed attempt.
func ExampleAsFailure() {
	store := middleware.NewMemory(nil)
	hold(store, "unique:t")
	handle(middleware.UniqueJob(store, nil, middleware.AsFailure()), succeed, nil)
	// Output: retry because "unique:t" is held
}

// OnBusy makes a job wait for the lock in place of being skipped.
func ExampleOnBusy() {
	store := middleware.NewMemory(nil)
	hold(store, "unique:t")
	handle(middleware.UniqueJob(store, nil, middleware.OnBusy(job.Defer(time.Second))), succeed, nil)
	// Output: defer because "unique:t" is held
}

// KeyedBy gives each customer a limit of its own.
func ExampleKeyedBy() {
	byCustomer := middleware.KeyedBy(middleware.Key("customer_{customer}"))
	limit := middleware.RateLimited(middleware.NewMemory(nil), 1, time.Minute, byCustomer)
	for _, customer := range []int{7, 7, 8} {
		handle(limit, succeed, map[string]int{"customer": customer})
	}
	// Output:
	// run {"customer":7}
	// success
	// defer because Rate limit exceeded for 't': max 1 executions per 60 seconds.
	// run {"customer":8}
	// success
}

// OnEvent reports what a layer did in place of running the job.
func ExampleOnEvent() {
	store := middleware.NewMemory(nil)
	count := map[string]int{}
	counted := middleware.OnEvent(func(ev middleware.Event) {
		count[fmt.Sprint(ev.Layer, " ", ev.Kind, ": ", ev.Answer)]++
	})
	hold(store, "unique:t")
	unique := middleware.UniqueJob(store, nil, counted)
	handle(unique, succeed, nil)
	handle(unique, succeed, nil)
	fmt.Println(count)
	// Output:
	// skip because "unique:t" is held
	// skip because "unique:t" is held
	// map[unique refused: skip:2]
}

// A Store leases the places of a key. Here the clock is the example's own.
func ExampleMemory() {
	now := time.Unix(0, 0)
	store := middleware.NewMemory(func() time.Time { return now })
	ctx := context.Background()
	fmt.Println(store.Acquire(ctx, "exports", "a", 1, time.Minute))
	fmt.Println(store.Acquire(ctx, "exports", "b", 1, time.Minute))
	now = now.Add(time.Minute) // a has not renewed its lease
	fmt.Println(store.Acquire(ctx, "exports", "b", 1, time.Minute))
	// Output:
	// true 0s <nil>
	// false 1m0s <nil>
	// true 0s <nil>
}
