package main

import (
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestReadmeShowsThisProgram(t *testing.T) {
	programtest.InReadme(t, "../../README.md", "## The first program", "main.go")
}

// 200 clients at once want CPU-bound work from two workers: each gets its answer.
func TestServerAnswersEveryRequestUnderLoad(t *testing.T) {
	p := serve(t)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	answers := make([]string, 200)
	var requests sync.WaitGroup
	for i := range answers {
		requests.Go(func() { answers[i] = get(client, p.url+"/?below=2000") })
	}
	requests.Wait()
	client.CloseIdleConnections() // a server waits 5 s for connections that have sent nothing
	for i, answer := range answers {
		assert.Equal(t, "200 OK: 303\n", answer, "request %d", i)
	}
	p.Signal(syscall.SIGTERM)
	code, _, stderr := p.Wait()
	assert.Zero(t, code, stderr)
}

// A request that runs when SIGTERM arrives gets its answer.
func TestServerDrainsOnSIGTERM(t *testing.T) {
	p := serve(t)
	client, err := task.Dial(t.Context(), task.Config{ServerName: "embed", TempDir: p.dir})
	require.NoError(t, err)
	defer client.Close()
	answer := make(chan string)
	go func() { answer <- get(http.DefaultClient, p.url+"/?below=50000") }()
	running := func() bool {
		rows := client.Status()
		return rows[0].Running+rows[1].Running > 0
	}
	require.Eventually(t, running, time.Minute, time.Millisecond)
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, "200 OK: 5133\n", <-answer)
	code, _, stderr := p.Wait()
	assert.Zero(t, code, stderr)
}

func TestServerRefusesWhatIsNoNumber(t *testing.T) {
	p := serve(t)
	assert.Contains(t, get(http.DefaultClient, p.url+"/?below=many"), "400 Bad Request: ")
}

// A server is the running program.
type server struct {
	*programtest.Program
	url, dir string // dir has the pool's sockets
}

// serve starts the program and waits until it listens.
func serve(t *testing.T) server {
	t.Helper()
	dir := programtest.ShortTempDir(t)
	addr := programtest.FreeAddr(t)
	p := programtest.Start(t, dir, []string{"TMPDIR=" + dir}, "-addr", addr)
	p.WaitListening(addr)
	return server{p, "http://" + addr, dir}
}

// get returns the status and the body, or the error.
func get(client *http.Client, url string) string {
	resp, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return resp.Status + ": " + string(body)
}
