package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

func TestReadmeShowsThisProgram(t *testing.T) {
	programtest.InReadme(t, "../../../README.md", "## Jobs", "main.go")
}

func TestJobRuns(t *testing.T) {
	p := programtest.Start(t, t.TempDir(), nil)
	assert.Equal(t, "welcome, user 7", p.Line("welcome"))
	p.Signal(syscall.SIGINT)
	code, _, stderr := p.Wait()
	assert.Zero(t, code, stderr)
}
