package supervisor

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The host is process 1 of a namespace: the pool works all the same.
func TestPoolWorksUnderPID1_Row35(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envHost+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		t.Skip("this system lets us make no PID namespace:", err)
	}
	defer cmd.Wait()
	defer in.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "up\n", line)
	p := &testPool{t: t, cfg: Config{TempDir: dir, ServerName: "T"}}
	old := p.pid(0)
	p.ask(0, "exit 1")
	eventually(t, "the restart", func() bool { a := p.ask(0, "who"); return a != "" && a != strconv.Itoa(old) })
}
