package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

func TestTheLongestSocketPathWorks_Row18(t *testing.T) {
	parallel(t)
	root := shortDir(t)
	dir := filepath.Join(root, strings.Repeat("d", 100-len("/p.TaskWorker.0.sock")-len(root)-1))
	require.NoError(t, os.Mkdir(dir, 0o700))
	p := startPool(t, task.Config{TempDir: dir, ServerName: "p", WorkerNum: 1})
	_, err := p.Sync(t.Context(), Echo{1})
	assert.NoError(t, err)
}
