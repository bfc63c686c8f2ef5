// Command gin answers the requests of a gin router in worker processes. SIGTERM ends first the
// server, then the pool.
//
//	go run ./examples/recipes/gin
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
	"strconv"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

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
	pool, err := task.New(task.Config{ServerName: "gin", TempDir: os.TempDir(), WorkerNum: 2, MaxRunningNum: 2})
	if err != nil {
		log.Fatal(err)
	}
	srv := &http.Server{Addr: *addr}
	if err := pool.AttachToServer(srv); err != nil { // in a worker process this call does not return
		log.Fatal(err)
	}
	router := gin.Default() // gin prints its routes: after the pool's start, so that no worker does
	router.GET("/primes/:below", countPrimes(pool))
	srv.Handler = router

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	served := make(chan error, 1)
	go func() { served <- srv.ListenAndServe() }()
	select {
	case err = <-served:
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(err, srv.Shutdown(limit), pool.Shutdown(limit)); err != nil {
		log.Fatal(err)
	}
}

func countPrimes(pool *task.Task) gin.HandlerFunc {
	return func(c *gin.Context) {
		below, err := strconv.ParseInt(c.Param("below"), 10, 64)
		if err != nil {
			c.JSON(http.StatusBadRequest, gin.H{"error": err.Error()})
			return
		}
		count, err := primes.Sync(c.Request.Context(), pool, below,
			task.WithWait(20*time.Second), task.WithTimeout(30*time.Second), task.WithCancel())
		switch {
		case errors.Is(err, task.ErrProcessBusy): // no slot became free, and the task did not run
			c.JSON(http.StatusServiceUnavailable, gin.H{"error": err.Error()})
		case err != nil:
			c.JSON(http.StatusInternalServerError, gin.H{"error": err.Error()})
		default:
			c.JSON(http.StatusOK, gin.H{"below": below, "primes": count})
		}
	}
}
