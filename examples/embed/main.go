// Command embed is a web server whose CPU-bound work runs in worker processes. Ctrl-C or SIGTERM
// ends it without failing a request. README.md shows it word for word.
//
//	go run ./examples/embed &
//	curl '127.0.0.1:8080/?below=100000'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/taskd-go/task"
)

// primes is a task: primes.Sync runs the function in a worker process and returns the count.
var primes = task.Define("primes", func(ctx context.Context, below int64) (count int, err error) {
	for n := range below {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if big.NewInt(n).ProbablyPrime(0) { // exact for 64 bits
			count++
		}
	}
	return count, nil
})

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	pool, err := task.New(task.Config{
		ServerName:    "embed",
		TempDir:       os.TempDir(), // for the sockets
		WorkerNum:     2,            // processes: about one for each CPU
		MaxRunningNum: 2,            // tasks at once in each: few, because each of them keeps a CPU busy
	})
	if err != nil {
		log.Fatal(err)
	}
	srv := &http.Server{Addr: *addr, Handler: countPrimes(pool)}
	if err := pool.AttachToServer(srv); err != nil { // in a worker process this call does not return
		log.Fatal(err)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	served := make(chan error, 1)
	go func() { served <- srv.ListenAndServe() }()
	select {
	case err = <-served: // the address is in use, for example
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// First the server, because its requests need the pool.
	if err := errors.Join(err, srv.Shutdown(limit), pool.Shutdown(limit)); err != nil {
		log.Fatal(err)
	}
}

func countPrimes(pool *task.Task) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		below, err := strconv.ParseInt(r.FormValue("below"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		count, err := primes.Sync(r.Context(), pool, below,
			task.WithWait(20*time.Second),    // for a free slot; without it a full pool refuses at once
			task.WithTimeout(30*time.Second), // for the whole call, the wait included
			task.WithCancel())                // a client that goes away ends the task's context
		switch {
		case errors.Is(err, task.ErrProcessBusy): // no slot became free, and the task did not run
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			fmt.Fprintln(w, count)
		}
	}
}
