// Package rundir makes the temporary folder of a run of chaos. The folder, and every process that
// works in it, goes with the run, also when SIGKILL ends the run.
package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task/chaos/internal/cli"
)

const (
	prefix  = "chaos-run-"
	unready = "chaos-new-" // a folder whose lock is not yet held
	lock    = "lock"

	guardName = "guard"
)

// A Dir is the folder of a run. Its path is so short that Unix sockets in it stay under 100 bytes.
//
// The run and its guard, a process that outlives it, both hold the lock of the folder. When the run
// ends, however it does, the guard kills all processes that work in the folder (see Processes), and
// removes it.
type Dir struct {
	Path string

	lock   *os.File
	guard  *exec.Cmd
	closed bool
	alive  io.Closer // the guard acts when this pipe closes, which the kernel does at the end of the process
}

// New makes a folder and starts its guard. It also removes the folders of earlier runs that ended
// without their guards.
func New() (*Dir, error) {
	for _, parent := range parents() {
		sweep(parent)
	}
	d := new(Dir)
	if err := d.create(); err != nil {
		return nil, fmt.Errorf("the folder of this run: %w", err)
	}
	if err := d.startGuard(); err != nil {
		return nil, errors.Join(fmt.Errorf("the guard of %s: %w", d.Path, err), clearDir(d.Path), d.lock.Close())
	}
	return d, nil
}

// parents returns where the folders of runs lie.
func parents() []string {
	if tmp := filepath.Clean(os.TempDir()); tmp != "/tmp" {
		return []string{"/tmp", tmp}
	}
	return []string{"/tmp"}
}

// create makes the folder. It has its final name from when it is locked, so no sweep removes it
// before.
func (d *Dir) create() (err error) {
	path, err := "", error(nil)
	for _, parent := range parents() {
		if path, err = os.MkdirTemp(parent, unready); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if d.lock, err = os.OpenFile(filepath.Join(path, lock), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return errors.Join(err, os.RemoveAll(path))
	}
	d.Path = filepath.Join(filepath.Dir(path), prefix+strings.TrimPrefix(filepath.Base(path), unready))
	// Servers that run as another user look up their own folders in it.
	err = errors.Join(syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), os.Chmod(path, 0o711))
	if err == nil {
		err = os.Rename(path, d.Path)
	}
	if err != nil {
		return errors.Join(err, d.lock.Close(), os.RemoveAll(path))
	}
	return nil
}

func (d *Dir) startGuard() error {
	self, err := cli.Executable()
	if err != nil {
		return err
	}
	d.guard = exec.Command(self, guardName, d.Path)
	d.guard.Dir = "/"                                         // not in the folder: it does not kill itself
	d.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the run
	d.guard.ExtraFiles = []*os.File{d.lock}                   // held until the guard has ended too
	if d.alive, err = d.guard.StdinPipe(); err != nil {
		return err
	}
	return d.guard.Start()
}

// Close kills the processes that work in the folder and removes it. A second call does nothing.
func (d *Dir) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	err := errors.Join(d.alive.Close(), d.guard.Wait(), d.lock.Close())
	if _, stat := os.Stat(d.Path); stat == nil {
		return errors.Join(err, fmt.Errorf("%s could not be removed", d.Path))
	}
	return err
}

// NewGuardCommand returns the hidden command that guards a folder. It ends when its standard input
// does.
func NewGuardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    guardName + " FOLDER",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.HasPrefix(filepath.Base(args[0]), prefix) {
				return cli.Usagef("%s is a part of chaos", guardName)
			}
			if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
				return err
			}
			return clearDir(args[0])
		},
	}
}

// sweep clears the folders in parent that no living run or guard holds.
func sweep(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the pattern is valid
	for _, path := range paths {
		if !ours(path) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(path, lock), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = clearDir(path) // what remains is left for the next sweep
		}
		f.Close()
	}
}

// ours reports whether path is a folder of this user, and no link.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
