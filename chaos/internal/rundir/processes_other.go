//go:build !linux

package rundir

import (
	"os/exec"
	"strconv"
	"strings"
)

// Processes returns the processes whose arguments name dir. The process itself is not among them.
func Processes(dir string) (pids []int) {
	out, err := exec.Command("ps", "-axo", "pid=,args=").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(pid)
		if err == nil && strings.Contains(args, dir+"/") {
			pids = append(pids, n)
		}
	}
	return pids
}
