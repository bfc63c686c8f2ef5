package memstat

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

func raiseOOMScore(delta int) {
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return
	}
	_ = os.WriteFile(file, []byte(strconv.Itoa(min(score+delta, 1000))), 0)
}

func oomKills() (uint64, bool) {
	g, ok := memoryGroup(os.DirFS("/"))
	if !ok {
		return 0, false
	}
	return g.oomKills()
}

func memoryLimit() int64 {
	g, ok := memoryGroup(os.DirFS("/"))
	if !ok {
		return 0
	}
	return g.limit()
}

func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// A cgroup is the control group that accounts the memory of this process, as files below root.
type cgroup struct {
	root                   fs.FS
	mount, dir             string // dir is mount or below it
	limitFile, oomKillFile string
}

// memoryGroup reads /proc/self/cgroup. It prefers a v1 memory controller: if there is one, v2 has
// no memory files. In a container the path may be that of the host; then the group is the mount
// itself.
func memoryGroup(root fs.FS) (cgroup, bool) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return cgroup{}, false
	}
	var found cgroup
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		v2 := parts[0] == "0" && parts[1] == ""
		switch {
		case strings.Contains(","+parts[1]+",", ",memory,"):
			return cgroup{root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.oom_control"}.placed(), true
		case v2:
			found = cgroup{root, "sys/fs/cgroup", parts[2], "memory.max", "memory.events"}.placed()
		}
	}
	return found, found.root != nil
}

func (g cgroup) placed() cgroup {
	dir := path.Join(g.mount, g.dir)
	if _, err := fs.Stat(g.root, dir); err != nil || !strings.HasPrefix(dir, g.mount) {
		dir = g.mount
	}
	g.dir = dir
	return g
}

func (g cgroup) oomKills() (uint64, bool) {
	text, err := fs.ReadFile(g.root, path.Join(g.dir, g.oomKillFile))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// limit treats the value with which v1 expresses "none", the largest number of whole pages, as
// none.
func (g cgroup) limit() int64 {
	const none = int64(1) << 62
	smallest := none
	for dir := g.dir; ; dir = path.Dir(dir) {
		text, err := fs.ReadFile(g.root, path.Join(dir, g.limitFile))
		if err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				smallest = min(smallest, n)
			}
		}
		if dir == g.mount {
			break
		}
	}
	if smallest == none {
		return 0
	}
	return smallest
}
