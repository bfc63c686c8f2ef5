package rundir

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Processes returns the processes that run without a terminal and whose working directory is dir or
// lies in it. Shells of people who look at the folder have a terminal.
func Processes(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is valid
	for _, link := range links {
		cwd, err := os.Readlink(link) // fails for a process that has ended
		if err != nil || !inside(strings.TrimSuffix(cwd, " (deleted)"), dir) {
			continue
		}
		proc := filepath.Dir(link)
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil && !terminal(proc) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// terminal reports whether the process of a folder in /proc has a controlling terminal.
func terminal(proc string) bool {
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return false
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // state, parent, group, session, terminal
	return len(fields) > 4 && fields[4] != "0"
}
