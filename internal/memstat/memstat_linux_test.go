package memstat

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestMemoryGroup(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		limit int64
		kills uint64
		known bool
	}{
		"v2": {map[string]string{
			"proc/self/cgroup":                      "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":          "max\n",
			"sys/fs/cgroup/a/b/memory.events":       "low 0\noom 9\noom_kill 3\noom_group_kill 1\n",
			"sys/fs/cgroup/a/memory.max":            "1048576\n",
			"sys/fs/cgroup/a/unrelated/memory.max":  "1\n",
			"sys/fs/cgroup/other-memory/memory.max": "1\n",
		}, 1 << 20, 3, true},
		"v1": {map[string]string{
			"proc/self/cgroup": "5:cpu,memory:/x\n0::/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4096\n",
			"sys/fs/cgroup/memory/x/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, 4096, 2, true},
		"v1 without a limit": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, 0, false},
		"a container that sees the host's path": {map[string]string{
			"proc/self/cgroup":            "0::/docker/0123\n",
			"sys/fs/cgroup/memory.max":    "8192\n",
			"sys/fs/cgroup/memory.events": "oom_kill 1\n",
			"sys/fs/cgroup/cgroup.procs":  "",
		}, 8192, 1, true},
		"a path out of the mount": {map[string]string{
			"proc/self/cgroup":         "0::/../../etc\n",
			"sys/fs/cgroup/memory.max": "8192\n",
			"etc/memory.max":           "1\n",
		}, 8192, 0, false},
		"nothing": {map[string]string{}, 0, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for path, content := range test.files {
				root[path] = &fstest.MapFile{Data: []byte(content)}
			}
			g, ok := memoryGroup(root)
			if !ok {
				assert.Empty(t, test.files)
				return
			}
			assert.Equal(t, test.limit, g.limit())
			kills, known := g.oomKills()
			assert.Equal(t, test.kills, kills)
			assert.Equal(t, test.known, known)
		})
	}
}

func TestResident(t *testing.T) {
	assert.Greater(t, Resident(os.Getpid()), int64(1<<20))
	assert.Zero(t, Resident(1<<30))
}
