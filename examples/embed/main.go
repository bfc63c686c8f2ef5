// Command embed is a web server whose requests are answered by worker
// processes. Ctrl-C or SIGTERM ends it without failing a request.
//
//	go run ./examples/embed &
//	curl '127.0.0.1:8080/?name=world'
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/taskd-go/task"
)

// Hello runs in a worker process. Its exported fields are its arguments.
type Hello struct{ Name string }

// Run greets.
func (h Hello) Run(_ context.Context, info task.Info) (any, error) {
	return fmt.Sprintf("hello %s, from worker %d", h.Name, info.WorkerIndex), nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	task.Register(Hello{})
	pool, err := task.New(task.Config{ServerName: "embed", TempDir: os.TempDir()})
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: "127.0.0.1:8080", Handler: greet(pool)}
	// In a worker process this call does not return.
	if err := pool.AttachToServer(srv); err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
		limit, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		// First the server, whose requests need the pool; then the pool's drain is waited for.
		ended <- errors.Join(srv.Shutdown(limit), pool.Shutdown(limit))
	}()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, pool.Shutdown(context.Background()))
	}
	return <-ended
}

func greet(pool *task.Task) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := task.As[string](pool.Sync(r.Context(), Hello{Name: r.FormValue("name")}))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, text)
	}
}
