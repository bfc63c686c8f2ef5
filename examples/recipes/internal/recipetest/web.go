// Package recipetest is the test that the recipes for web frameworks share.
package recipetest

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/programtest"
)

// Web starts a recipe that counts primes on /primes/BELOW, asks it for those below 100, and sends
// it SIGTERM while another request runs in the pool. want is the answer to the first request.
func Web(t *testing.T, pool, want string) {
	dir, addr := programtest.ShortTempDir(t), programtest.FreeAddr(t)
	p := programtest.Start(t, dir, []string{"TMPDIR=" + dir}, "-addr", addr)
	p.WaitListening(addr)
	assert.Equal(t, "200 OK "+want, get("http://"+addr+"/primes/100"))
	assert.Contains(t, get("http://"+addr+"/primes/many"), "400 Bad Request ")

	answer := make(chan string)
	go func() { answer <- get("http://" + addr + "/primes/50000") }()
	WaitRunning(t, dir, pool)
	p.Signal(syscall.SIGTERM)
	assert.Contains(t, <-answer, "5133", "the request that ran when the signal came")
	code, _, stderr := p.Wait()
	assert.Zero(t, code, stderr)
}

// WaitRunning waits until a task runs in the pool.
func WaitRunning(t *testing.T, dir, pool string) {
	client, err := task.Dial(t.Context(), task.Config{ServerName: pool, TempDir: dir})
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool {
		for _, row := range client.Status() {
			if row.Running > 0 {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond, "no task runs")
}

// get returns the status and the body, or the error.
func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return resp.Status + " " + strings.TrimSpace(string(body))
}
