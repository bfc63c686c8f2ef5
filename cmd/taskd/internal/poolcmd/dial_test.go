package poolcmd

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/cmd/taskd/internal/cli"
)

// A stopped parent looks like a socket that takes connections and says nothing.
func TestCommandsOfAStoppedPoolEndInTime_Found12(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cmd  *cobra.Command
		args []string
	}{
		"call":   {Call(nil), []string{"echo", "1", "--timeout", "200ms"}},
		"async":  {Async(nil), []string{"echo", "1", "--timeout", "200ms"}},
		"status": {Status(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("/tmp", "taskd-t")
			require.NoError(t, err)
			t.Cleanup(func() { os.RemoveAll(dir) })
			l, err := net.Listen("unix", filepath.Join(dir, "p.Pool.sock"))
			require.NoError(t, err)
			defer l.Close()
			c.cmd.SetArgs(append(c.args, "--name", "p", "--dir", dir))
			c.cmd.SilenceErrors, c.cmd.SilenceUsage = true, true
			ended := make(chan error, 1)
			go func() { ended <- c.cmd.ExecuteContext(t.Context()) }()
			select {
			case err := <-ended:
				assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
				assert.Equal(t, cli.ExitNotRun, cli.ExitCode(err))
			case <-time.After(time.Minute):
				t.Fatal("it waits for the pool without a limit")
			}
		})
	}
}
