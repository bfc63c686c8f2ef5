// Package task runs work outside the calling process: a program forks copies
// of itself as worker processes, sends them tasks over Unix sockets, and knows
// from shared memory which of them is least busy.
//
// A task is a value with a Run method. It is registered under a name, travels
// to a worker as its exported fields, and runs there:
//
//	type Hello struct{ Name string }
//
//	func (h Hello) Run(ctx context.Context, info task.Info) (any, error) {
//		return "hello " + h.Name, nil
//	}
//
//	func init() { task.Register(Hello{}) }
//
//	func main() {
//		pool, err := task.New(task.Config{ServerName: "greeter", TempDir: "/tmp"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		// In a re-executed worker Start runs that worker and does not return.
//		if err := pool.Start(context.Background()); err != nil {
//			log.Fatal(err)
//		}
//		defer pool.Shutdown(context.Background())
//		s, err := task.As[string](pool.Sync(context.Background(), Hello{Name: "you"}))
//		fmt.Println(s, err)
//	}
//
// # Workers
//
// A worker is the same program with the same arguments, environment and
// working directory. It runs the same main until that reaches Start,
// AttachToServer or RunIfWorker, so these come before anything with an effect.
// In a test binary TestMain calls RunIfWorker first.
//
// # Delivery
//
// A call goes to one worker once: nothing queues, and nothing is sent again
// behind the caller's back. A failed call is an *Error whose Delivery says
// whether the task did not run, may have run, or ran.
//
// # Time
//
// A call has one budget for encoding, choosing, connecting, sending and
// waiting. A package whose deadline has passed is refused before its run; a
// run that has begun is not cut by its caller's time-out, unless the caller
// asked for that with WithCancel.
package task
