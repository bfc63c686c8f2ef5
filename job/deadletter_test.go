package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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

func TestDeadLetterEntries(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Push struct {
			Cases []struct {
				Name  string
				Job   json.RawMessage
				Error string
				At    int64
				Want  map[string]any `json:"expect_entry"`
			}
		}
		Pop struct {
			Cases []struct {
				Text   *string `json:"entry_text"`
				Expect *struct {
					Error string
					At    int64
				}
			}
		}
	}](t, "dead_letter.json")
	for _, c := range file.Push.Cases {
		t.Run("push "+c.Name, func(t *testing.T) {
			if c.Name == "not_encodable" {
				e := Envelope{V: 1, JobID: "J", JobType: "t", Attempt: 1, MaxAttempts: 1}
				e.Payload = json.RawMessage("{\"n\":\"\xff\xfe\"}")
				data, err := json.Marshal(NewDeadLetter("", e, errors.New("bad \xff text")))
				require.NoError(t, err)
				got := DecodeDeadLetter(data)
				assert.Empty(t, got.Broken)
				assert.JSONEq(t, `{"n":"`+strings.Repeat("\uFFFD", 1)+`"}`, string(got.Job.Payload))
				return
			}
			e, err := Decode(c.Job)
			require.NoError(t, err)
			d := NewDeadLetter("", e, errors.New(c.Error))
			d.At = c.At
			data, err := json.Marshal(d)
			require.NoError(t, err)
			var members map[string]any
			require.NoError(t, unmarshal(data, &members))
			for name, want := range c.Want {
				assert.Equal(t, want, members[name], name)
			}
			assert.Equal(t, "default", members["queue"])
			back := DecodeDeadLetter(data)
			assert.JSONEq(t, string(d.Job.Payload), string(back.Job.Payload))
			back.Job.Payload = d.Job.Payload // up to white space
			assert.Equal(t, d, back, "round trip")
		})
	}
	for i, c := range file.Pop.Cases {
		if c.Text == nil {
			continue
		}
		t.Run(fmt.Sprintf("entry %d", i), func(t *testing.T) {
			got := DecodeDeadLetter([]byte(*c.Text))
			if c.Expect != nil {
				assert.Equal(t, c.Expect.Error, got.Error)
				assert.Equal(t, c.Expect.At, got.At)
			}
			assert.NotEmpty(t, got.Broken, "none of these holds a job")
			assert.Equal(t, *c.Text, string(got.Raw), "and none of them is lost")
		})
	}
}
