package dbserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/chaos/internal/clitest"
	"github.com/taskd-go/task/chaos/internal/rundir"
	"github.com/taskd-go/task/internal/testsize"
)

func TestMain(m *testing.M) { clitest.Main(m, serveCommand()) }

// serveCommand returns a command that starts a server, prints its folder, and waits.
func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve KIND",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := rundir.New()
			if err != nil {
				return err
			}
			create := NewPostgres
			if args[0] == "mariadb" {
				create = NewMariaDB
			}
			s, err := create(filepath.Join(dir.Path, "server"))
			if err != nil {
				return errors.Join(err, dir.Close())
			}
			if err := s.Start(cmd.Context(), s.dial); err != nil {
				return errors.Join(err, dir.Close())
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir.Path)
			select {}
		},
	}
}

// dial connects to the server's socket or port.
func (s *Server) dial(context.Context) error {
	network, address := "unix", filepath.Join(s.dir, ".s.PGSQL.5432")
	if u, err := url.Parse(s.DSN); err == nil && u.Host != "" {
		network, address = "tcp", u.Host
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestServersEndWithTheirRun(t *testing.T) {
	testsize.NeedsFull(t, "starts and kills database servers")
	for _, kind := range []string{"postgres", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			out, in := io.Pipe()
			cmd := clitest.Start(t, t.TempDir(), in, &log, "serve", kind)
			ended := make(chan error, 1)
			go func() {
				ended <- cmd.Wait()
				in.Close()
			}()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				<-ended
				t.Skipf("NOT TESTED: %s", log.String())
			}
			path := strings.TrimSpace(line)
			assert.NotEmpty(t, rundir.Processes(path))
			require.NoError(t, cmd.Process.Kill())
			assert.Eventually(t, func() bool {
				_, err := os.Stat(path)
				return os.IsNotExist(err) && len(rundir.Processes(path)) == 0
			}, time.Minute, 10*time.Millisecond)
			<-ended
		})
	}
}

func TestAMissingServerProgramIsNoFailure(t *testing.T) {
	_, err := program("taskd-no-such-server", append(postgresDirs, mariadbDirs...))
	assert.ErrorIs(t, err, ErrNoProgram)
	assert.ErrorContains(t, err, "taskd-no-such-server")
}
