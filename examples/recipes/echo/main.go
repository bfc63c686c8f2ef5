// Command echo answers the requests of an echo server in worker processes. SIGTERM ends first the
// server, then the pool.
//
//	go run ./examples/recipes/echo
//	curl 127.0.0.1:8080/primes/100000
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"math/big"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/taskd-go/task"
)

var primes = task.Define("primes", func(ctx context.Context, below int64) (count int, err error) {
	for n := range below {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if big.NewInt(n).ProbablyPrime(0) {
			count++
		}
	}
	return count, nil
})

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	pool, err := task.New(task.Config{ServerName: "echo", TempDir: os.TempDir(), WorkerNum: 2, MaxRunningNum: 2})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	e.GET("/primes/:below", countPrimes(pool))
	if err := pool.AttachToServer(e.Server); err != nil { // in a worker process this call does not return
		log.Fatal(err)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	served := make(chan error, 1)
	go func() { served <- e.Start(*addr) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(err, e.Shutdown(limit), pool.Shutdown(limit)); err != nil {
		log.Fatal(err)
	}
}

func countPrimes(pool *task.Task) echo.HandlerFunc {
	return func(c echo.Context) error {
		var in struct {
			Below int64 `param:"below"`
		}
		if err := c.Bind(&in); err != nil {
			return err // 400
		}
		count, err := primes.Sync(c.Request().Context(), pool, in.Below,
			task.WithWait(20*time.Second), task.WithTimeout(30*time.Second), task.WithCancel())
		switch {
		case errors.Is(err, task.ErrProcessBusy): // no slot became free, and the task did not run
			return echo.NewHTTPError(http.StatusServiceUnavailable, err.Error())
		case err != nil:
			return err // 500
		default:
			return c.JSON(http.StatusOK, map[string]int64{"below": in.Below, "primes": int64(count)})
		}
	}
}
