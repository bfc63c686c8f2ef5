// Package task runs functions in worker processes. A program starts copies of itself as workers,
// sends them tasks over Unix sockets, and picks for each task the worker with the fewest running
// tasks. A task that crashes, leaks or hangs costs one worker and not the program.
//
// A task is a function that Define registers under a name:
//
//	var greet = task.Define("greet", func(ctx context.Context, name string) (string, error) {
//		return "hello " + name, nil
//	})
//
//	func main() {
//		pool, err := task.New(task.Config{ServerName: "greeter", TempDir: "/tmp"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		// In a worker, Start runs the worker and does not return.
//		if err := pool.Start(context.Background()); err != nil {
//			log.Fatal(err)
//		}
//		defer pool.Shutdown(context.Background())
//		s, err := greet.Sync(context.Background(), pool, "you", task.WithWait(time.Second))
//		fmt.Println(s, err)
//	}
//
// A task may also be a type: Register registers a Runner, whose exported fields are the task's
// arguments.
//
// # Workers
//
// A worker is the same program with the same arguments, environment and working directory. It runs
// main up to Start, AttachToServer or RunIfWorker, so call one of these before main has side
// effects. In a test binary, TestMain calls RunIfWorker first.
//
// # Delivery
//
// Each call goes to one worker, once. A pool has no queue: without WithWait, a call to a pool whose
// slots are all taken fails at once with ErrProcessBusy. The package never repeats a call. A failed
// call returns an *Error, whose Delivery says whether the task did not run, may have run, or ran.
//
// # Time
//
// WithTimeout bounds a whole call: encoding, choosing a worker, connecting, sending and waiting. A
// worker does not start a task whose deadline has passed. A task that has begun runs on when its
// caller's time is over, unless the call has WithCancel.
package task
