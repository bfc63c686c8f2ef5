package conformance

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const readmeImports = `package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue/migrate"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)
`

// TestTheProgramOfTheReadmeRuns builds it as it stands there.
func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, part, found := strings.Cut(string(text), "\n## Jobs that survive\n")
	require.True(t, found)
	_, part, found = strings.Cut(part, "```go\n")
	require.True(t, found)
	program, _, found := strings.Cut(part, "```\n")
	require.True(t, found)

	dir := t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	source, overlay, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source, []byte(readmeImports+program), 0o600))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "readme", "main.go"): source}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, "./readme").CombinedOutput()
	require.NoError(t, err, string(out))

	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	assert.NoError(t, err)
	assert.Equal(t, "welcome, user 7\n", line)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	assert.NoError(t, cmd.Wait())
}
