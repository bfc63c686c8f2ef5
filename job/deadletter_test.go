package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeKinds = []struct {
	name string
	open func(t *testing.T) DeadLetters
}{
	{"memory", func(*testing.T) DeadLetters { return NewMemoryDeadLetters() }},
	{"file", func(t *testing.T) DeadLetters { return openFileAt(t, filepath.Join(t.TempDir(), "dead.jsonl")) }},
}

func openFileAt(t *testing.T, path string) *FileDeadLetters {
	t.Helper()
	store, err := OpenFileDeadLetters(path)
	require.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	return store
}

func letter(id, queue string) DeadLetter {
	e := Envelope{V: 1, JobID: id, JobType: "type." + id, Attempt: 5, MaxAttempts: 5, CreatedAt: 7}
	return NewDeadLetter(queue, e, errors.New("down"))
}

func put(t *testing.T, store DeadLetters, d DeadLetter) string {
	t.Helper()
	id, err := store.Put(t.Context(), d)
	require.NoError(t, err)
	return id
}

// jobs lists the jobs of a queue, a few at a time.
func jobs(t *testing.T, store DeadLetters, queue string) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		page, next, err := store.Page(t.Context(), queue, cursor, 2)
		require.NoError(t, err)
		for _, d := range page {
			ids = append(ids, d.Job.JobID)
		}
		if next == "" {
			return ids
		}
		cursor = next
	}
}

func TestDeadLetterStores(t *testing.T) {
	t.Parallel()
	for _, kind := range storeKinds {
		t.Run(kind.name, func(t *testing.T) {
			store := kind.open(t)
			ids := map[string]string{}
			for i, name := range []string{"a", "b", "c", "d", "e"} {
				ids[name] = put(t, store, letter(name, []string{"mail", "sms"}[i%2]))
			}
			assert.Equal(t, []string{"a", "b", "c", "d", "e"}, jobs(t, store, ""))
			assert.Equal(t, []string{"a", "c", "e"}, jobs(t, store, "mail"))
			assert.Equal(t, []string{"b", "d"}, jobs(t, store, "sms"))

			got, err := store.Get(t.Context(), ids["b"])
			require.NoError(t, err)
			want := letter("b", "sms")
			want.ID, want.At, want.Attempts[0].At = ids["b"], got.At, got.At
			want.Job.Payload, got.Job.Payload = nil, nil // nil and {} are the same
			assert.Equal(t, want, got)

			got.Broken = "set aside"
			assert.Equal(t, ids["b"], put(t, store, got))
			got, err = store.Get(t.Context(), ids["b"])
			require.NoError(t, err)
			assert.Equal(t, "set aside", got.Broken)
			assert.Equal(t, []string{"b", "d"}, jobs(t, store, "sms"), "replaced in its place")

			n, err := store.Remove(t.Context(), ids["a"], ids["c"], "unknown", ids["a"])
			require.NoError(t, err)
			assert.Equal(t, 2, n)
			_, err = store.Get(t.Context(), ids["a"])
			assert.ErrorIs(t, err, ErrNoDeadLetter)
			for queue, want := range map[string]int{"": 3, "mail": 1, "sms": 2, "none": 0} {
				n, err := store.Len(t.Context(), queue)
				require.NoError(t, err)
				assert.Equal(t, want, n, queue)
			}
			_, _, err = store.Page(t.Context(), "", "no cursor", 1)
			assert.Error(t, err)
		})
	}
}

func TestDeadLetterStoresAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	for _, kind := range storeKinds {
		t.Run(kind.name, func(t *testing.T) {
			store := kind.open(t)
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					for i := range 25 {
						id := put(t, store, letter(fmt.Sprintf("%d-%d", w, i), ""))
						if i%2 == 0 {
							_, err := store.Remove(t.Context(), id)
							assert.NoError(t, err)
						}
						jobs(t, store, "")
					}
				})
			}
			writers.Wait()
			n, err := store.Len(t.Context(), "")
			require.NoError(t, err)
			assert.Equal(t, 4*12, n)
		})
	}
}

func TestDeadLetterFileSurvivesACrashAtAnyByte(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	store := openFileAt(t, path)
	put(t, store, letter("a", ""))
	b := put(t, store, letter("b", ""))
	_, err := store.Remove(t.Context(), b)
	require.NoError(t, err)
	before, err := os.Stat(path)
	require.NoError(t, err)
	long := letter("c", "")
	long.Error = strings.Repeat("x", 2000) // longer than what is written over it
	put(t, store, long)
	require.NoError(t, store.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	for cut := int(before.Size()); cut < len(whole); cut += 101 {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		store, err := OpenFileDeadLetters(path)
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, jobs(t, store, ""), "cut at %d", cut)
		repaired, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, before.Size(), repaired.Size(), "cut at %d", cut)
		put(t, store, letter("d", ""))
		require.NoError(t, store.Close())

		store, err = OpenFileDeadLetters(path)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "d"}, jobs(t, store, ""), "cut at %d", cut)
		require.NoError(t, store.Close())
	}
}

func TestDeadLetterFileKeepsALineItCannotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	store := openFileAt(t, path)
	put(t, store, letter("a", ""))
	require.NoError(t, store.Close())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("garbage\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())

	store = openFileAt(t, path)
	put(t, store, letter("b", ""))
	page, _, err := store.Page(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Len(t, page, 3)
	assert.Equal(t, "garbage", string(page[1].Raw))
	assert.NotEmpty(t, page[1].Broken)

	var replayed []string
	n, err := Replay(t.Context(), store, func(_ context.Context, e Envelope) error {
		replayed = append(replayed, e.JobID)
		return nil
	}, Filter{Limit: 10})
	var broken *BrokenError
	require.ErrorAs(t, err, &broken)
	assert.Equal(t, []string{page[1].ID}, broken.IDs)
	assert.Equal(t, 2, n)
	assert.Equal(t, []string{"a", "b"}, replayed)

	_, err = store.Remove(t.Context(), page[1].ID)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	assert.Empty(t, jobs(t, openFileAt(t, path), ""))
}

func TestDeadLetterFileHasOneOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	store := openFileAt(t, path)
	_, err := OpenFileDeadLetters(path)
	require.ErrorContains(t, err, path)
	require.NoError(t, store.Close())
	require.NoError(t, store.Close())
	_, err = store.Put(t.Context(), letter("a", ""))
	assert.ErrorIs(t, err, os.ErrClosed)
	openFileAt(t, path)
}

func TestDeadLetterFileIsCompacted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	store := openFileAt(t, path)
	keep := put(t, store, letter("keep", ""))
	removed := put(t, store, letter("removed", ""))
	kept := put(t, store, letter("kept", ""))
	_, err := store.Remove(t.Context(), removed)
	require.NoError(t, err)
	d := letter("big", "")
	d.Error = strings.Repeat("x", 300_000)
	for range 8 {
		id := put(t, store, d)
		_, err := store.Remove(t.Context(), id)
		require.NoError(t, err)
	}
	last := put(t, store, letter("last", ""))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(1_500_000), "2.4 MB were written")
	for id, want := range map[string]string{keep: "keep", kept: "kept", last: "last"} {
		got, err := store.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, want, got.Job.JobID)
	}
	require.NoError(t, store.Close())
	assert.Equal(t, []string{"keep", "kept", "last"}, jobs(t, openFileAt(t, path), ""))
}

func TestDeadLetterFileStaysWholeWhenAWriteFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	store := openFileAt(t, path)
	put(t, store, letter("a", ""))
	good := store.file
	readOnly, err := os.Open(path)
	require.NoError(t, err)
	store.file = readOnly
	_, err = store.Put(t.Context(), letter("lost", ""))
	require.Error(t, err)
	assert.Equal(t, []string{"a"}, jobs(t, store, ""))
	_, err = store.Put(t.Context(), letter("lost", ""))
	require.ErrorContains(t, err, "cut off", "the end of the file is not known any more")
	require.NoError(t, readOnly.Close())
	store.file = good
	require.NoError(t, store.Close())
	assert.Equal(t, []string{"a"}, jobs(t, openFileAt(t, path), ""))
}

func TestConfigBuild(t *testing.T) {
	t.Parallel()
	build := func(driver string, drivers map[string]OpenDeadLetters) (*Parts, error) {
		cfg := DefaultConfig()
		cfg.DeadLetter.Driver = driver
		cfg.DeadLetter.Path = filepath.Join(t.TempDir(), "dead.jsonl")
		return cfg.Build(drivers, answering(Success()))
	}
	for driver, want := range map[string]DeadLetters{
		"log_only": LogDeadLetters{}, "memory": &MemoryDeadLetters{}, "file": &FileDeadLetters{},
	} {
		parts, err := build(driver, nil)
		require.NoError(t, err, driver)
		assert.IsType(t, want, parts.DeadLetters)
		assert.True(t, parts.Registry.Has("t"))
		assert.Equal(t, 120*time.Second, parts.Runner.Timeout)
		assert.Equal(t, DefaultRetryPolicy(), parts.Runner.Policy)
		e, err := parts.Publisher(func(context.Context, Envelope) error { return nil }).Dispatch(t.Context(), "t", nil, nil)
		require.NoError(t, err)
		assert.Equal(t, 5, e.MaxAttempts)
		require.NoError(t, parts.Close())
	}

	_, err := build("redis_list", nil)
	assert.ErrorContains(t, err, `"redis_list"`)
	assert.ErrorContains(t, err, "github.com/taskd-go/task/contrib")
	_, err = build("carrier_pigeon", nil)
	assert.ErrorContains(t, err, `"carrier_pigeon"`)
	assert.NotContains(t, err.Error(), "contrib")

	own := NewMemoryDeadLetters()
	parts, err := build("redis_list", map[string]OpenDeadLetters{"redis_list": func(c Config) (DeadLetters, error) {
		assert.Equal(t, "job:dead:", c.DeadLetter.KeyPrefix)
		return own, nil
	}})
	require.NoError(t, err)
	assert.Same(t, own, parts.DeadLetters)

	cfg := DefaultConfig()
	cfg.DeadLetter.Driver = "file"
	_, err = cfg.Build(nil)
	assert.ErrorContains(t, err, "JOB_DLQ_PATH")
}

func TestReadConfigNamesWhatItIgnores(t *testing.T) {
	t.Parallel()
	_, ignored := ReadConfig(map[string]any{"default_max_attempts": "abc", "dead_letter": "no"},
		func(name string) string { return map[string]string{"JOB_BACKOFF_MULTIPLIER": "NaN"}[name] })
	assert.ElementsMatch(t, []string{"default_max_attempts=abc", "dead_letter=no", "JOB_BACKOFF_MULTIPLIER=NaN"}, ignored)
}
