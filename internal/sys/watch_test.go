package sys

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func receive(t *testing.T, gone <-chan string) string {
	t.Helper()
	select {
	case name := <-gone:
		return name
	case <-time.After(limit):
		require.FailNow(t, "nothing was reported")
		return ""
	}
}

// A cleaner removes the live socket file and nobody notices.
func TestWatchReportsWhatIsGone_Row17(t *testing.T) {
	tests := map[string]struct {
		act  func(dir string) error
		want []string
	}{
		"removed": {func(dir string) error { return os.Remove(filepath.Join(dir, "a")) }, []string{"a"}},
		"renamed away": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "b"), filepath.Join(dir,
				"z"))
		}, []string{"b"}},
		"replaced": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "other"),
				filepath.Join(dir, "a"))
		}, []string{"a"}},
		"directory and all":  {os.RemoveAll, nil},
		"directory is moved": {func(dir string) error { return os.Rename(dir, dir+".moved") }, []string{"a", "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "watched")
			require.NoError(t, os.Mkdir(dir, 0o700))
			for _, f := range []string{"a", "b", "other"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
			}
			gone, stop, err := WatchGone(dir, []string{"a", "b"})
			require.NoError(t, err)
			defer stop()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "not asked for"), nil, 0o600))
			require.NoError(t, os.Remove(filepath.Join(dir, "not asked for")))
			require.NoError(t, test.act(dir))
			if test.want == nil {
				first, second := receive(t, gone), receive(t, gone)
				assert.ElementsMatch(t, []string{"a", "b"}, []string{first, second})
			}
			for _, want := range test.want {
				assert.Equal(t, want, receive(t, gone))
			}
		})
	}
}

func TestWatchStops(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	before := countFiles(t)
	_, stop, err := WatchGone(dir, []string{"a"})
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "a"))) // nobody takes the report
	within(t, "stop", async(stop))
	within(t, "a second stop", async(stop))
	assert.Equal(t, before, countFiles(t))

	_, _, err = WatchGone(filepath.Join(dir, "none"), nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
