package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplayRemovesAfterPublishing(t *testing.T) {
	t.Parallel()
	for _, kind := range storeKinds {
		t.Run(kind.name, func(t *testing.T) {
			store := kind.open(t)
			id := put(t, store, letter("a", ""))
			ctx, cancel := context.WithCancel(t.Context())
			n, err := Replay(ctx, store, func(context.Context, Envelope) error {
				_, err := store.Get(t.Context(), id)
				assert.NoError(t, err, "until it is published it is a dead letter")
				cancel() // too late to keep the letter: it was published
				return nil
			}, Filter{Limit: 5})
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			assert.Empty(t, jobs(t, store, ""))
		})
	}
}

func TestReplayChooses(t *testing.T) {
	t.Parallel()
	at := func(d DeadLetter, unix int64) DeadLetter { d.At = unix; return d }
	timeout := letter("b", "sms")
	timeout.Reason = ReasonTimeout
	refused := letter("c", "mail")
	refused.ErrorClass = "net.OpError"
	letters := []DeadLetter{at(letter("a", "mail"), 100), at(timeout, 200), at(refused, 300)}
	for i := range letters {
		letters[i].ID = "id-" + letters[i].Job.JobID
	}
	tests := []struct {
		name   string
		filter Filter
		want   []string
	}{
		{"one by default", Filter{}, []string{"a"}},
		{"all", Filter{Limit: 10}, []string{"a", "b", "c"}},
		{"a queue", Filter{Queue: "sms", Limit: 10}, []string{"b"}},
		{"types", Filter{Types: []string{"type.c", "type.b"}, Limit: 10}, []string{"b", "c"}},
		{"a reason", Filter{Reasons: []Reason{ReasonTimeout}, Limit: 10}, []string{"b"}},
		{"an error class", Filter{ErrorClasses: []string{"net.OpError"}, Limit: 10}, []string{"c"}},
		{"a time", Filter{Since: time.Unix(200, 0), Until: time.Unix(300, 0), Limit: 10}, []string{"b"}},
		{"ids, all of them", Filter{IDs: []string{"id-c", "id-a"}}, []string{"c", "a"}},
		{"ids, limited", Filter{IDs: []string{"id-c", "id-a"}, Limit: 1}, []string{"c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := NewMemoryDeadLetters()
			for _, d := range letters {
				put(t, store, d)
			}
			var replayed []string
			n, err := Replay(t.Context(), store, func(_ context.Context, e Envelope) error {
				replayed = append(replayed, e.JobID)
				return nil
			}, tt.filter)
			require.NoError(t, err)
			assert.Equal(t, tt.want, replayed)
			assert.Equal(t, len(tt.want), n)
		})
	}
	_, err := Replay(t.Context(), NewMemoryDeadLetters(), nil, Filter{IDs: []string{"unknown"}})
	assert.ErrorIs(t, err, ErrNoDeadLetter)
}

func TestReplayCountsBeforeItRuns(t *testing.T) {
	t.Parallel()
	store := NewMemoryDeadLetters()
	for _, id := range []string{"a", "b", "c"} {
		put(t, store, letter(id, "mail"))
	}
	put(t, store, RawDeadLetter("mail", []byte("no envelope"), errors.New("not json")))
	for limit, want := range map[int]int{0: 1, 2: 2, 10: 3} {
		n, err := Replay(t.Context(), store, nil, Filter{Queue: "mail", Limit: limit, DryRun: true})
		require.NoError(t, err)
		assert.Equal(t, want, n, "limit %d", limit)
	}
	assert.Equal(t, 4, length(t, store), "none was replayed")

	var progress []string
	publish := func(context.Context, Envelope) error { return nil }
	_, err := Replay(t.Context(), store, publish, Filter{Limit: 10, Progress: func(done, of int) {
		progress = append(progress, fmt.Sprintf("%d of %d", done, of))
	}})
	var broken *BrokenError
	require.ErrorAs(t, err, &broken)
	assert.Equal(t, []string{"1 of 4", "2 of 4", "3 of 4", "4 of 4"}, progress)
}

func length(t *testing.T, store DeadLetters) int {
	t.Helper()
	n, err := store.Len(t.Context(), "")
	require.NoError(t, err)
	return n
}

func TestReplayKeepsToItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := NewMemoryDeadLetters()
		for i := range 11 {
			put(t, store, letter(fmt.Sprint(i), ""))
		}
		start := time.Now()
		publish := func(context.Context, Envelope) error { return nil }
		n, err := Replay(t.Context(), store, publish, Filter{Limit: 100, Rate: 5})
		require.NoError(t, err)
		assert.Equal(t, 11, n)
		assert.Equal(t, 2*time.Second, time.Since(start))

		put(t, store, letter("late", ""))
		put(t, store, letter("later", ""))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n, err = Replay(ctx, store, publish, Filter{Limit: 100, Rate: 0.001})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, n)
	})
}

func TestReplayCountsAndRemembers(t *testing.T) {
	t.Parallel()
	store := NewMemoryDeadLetters()
	put(t, store, letter("a", ""))
	r := &Runner{Logger: slog.New(slog.DiscardHandler)}
	for round := 1; round <= 3; round++ {
		_, err := Replay(t.Context(), store, func(ctx context.Context, e Envelope) error {
			assert.Equal(t, 1, e.Attempt)
			assert.Equal(t, number(int64(round)), e.Meta[MetaReplays])
			_, err := r.Run(ctx, answering(Fail(fmt.Errorf("round %d", round))), e, nil, DeadLetterTo(store, ""))
			return err
		}, Filter{})
		require.NoError(t, err)
		page, _, err := store.Page(t.Context(), "", "", 10)
		require.NoError(t, err)
		require.Len(t, page, 1, "the letter that came during the replay stays")
		assert.Equal(t, round, page[0].Replays)
		assert.Len(t, page[0].Attempts, round+1)
	}
}

func TestReplaySetsAsideWhatThePublisherCannotEncode(t *testing.T) {
	t.Parallel()
	store := NewMemoryDeadLetters()
	put(t, store, RawDeadLetter("", []byte("no envelope"), errors.New("not json")))
	bad := letter("bad", "")
	bad.Job.Payload = []byte(`"text"`)
	id := put(t, store, bad)
	put(t, store, letter("good", ""))
	var events []EventKind
	n, err := Replay(t.Context(), store, func(_ context.Context, e Envelope) error {
		_, err := e.Encode()
		return err
	}, Filter{Limit: 10, OnEvent: func(ev Event) { events = append(events, ev.Kind) }})
	var broken *BrokenError
	require.ErrorAs(t, err, &broken)
	assert.Len(t, broken.IDs, 2)
	assert.Equal(t, 1, n)
	assert.Equal(t, []EventKind{EventSetAside, EventReplayed}, events)
	got, err := store.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Contains(t, got.Broken, "payload")
}

func TestReplayVectors(t *testing.T) {
	t.Parallel()
	file := vector[struct {
		Replay struct {
			Cases []struct {
				Name   string
				Pushed []string
				Limit  int
				Expect struct {
					Replayed    []string
					Attempts    []int
					Count       *int
					Left        *int
					Quarantined int
				}
			}
		}
	}](t, "dead_letter.json")
	for _, c := range file.Replay.Cases {
		if noOperation["dead_letter.json replay "+c.Name] != "" {
			continue
		}
		for _, kind := range storeKinds {
			t.Run(c.Name+" "+kind.name, func(t *testing.T) {
				store := kind.open(t)
				for _, id := range c.Pushed {
					e := Envelope{V: 1, JobID: id, JobType: "t", Attempt: 5, MaxAttempts: 5, CreatedAt: 7}
					if strings.HasPrefix(id, "<") {
						e.JobType = ""
					}
					_, err := store.Put(t.Context(), NewDeadLetter("", e, errors.New("x")))
					require.NoError(t, err)
				}
				replayed, attempts := []string{}, []int{}
				publish := func(_ context.Context, e Envelope) error {
					if c.Name == "publish_fails_on_second" && len(replayed) == 1 {
						return errors.New("broker is down")
					}
					replayed, attempts = append(replayed, e.JobID), append(attempts, e.Attempt)
					return nil
				}
				n, err := Replay(t.Context(), store, publish, Filter{Queue: DefaultQueue, Limit: c.Limit})
				var broken *BrokenError
				switch {
				case c.Expect.Quarantined > 0:
					require.ErrorAs(t, err, &broken)
					assert.Len(t, broken.IDs, c.Expect.Quarantined)
				case c.Name == "publish_fails_on_second":
					require.ErrorContains(t, err, "broker is down")
				default:
					require.NoError(t, err)
				}
				assert.Equal(t, c.Expect.Replayed, replayed)
				if c.Expect.Attempts != nil {
					assert.Equal(t, c.Expect.Attempts, attempts)
				}
				assert.Equal(t, len(replayed), n)
				left, err := store.Len(t.Context(), "")
				require.NoError(t, err)
				assert.Equal(t, len(c.Pushed)-len(replayed), left)
				if c.Expect.Left != nil {
					assert.Equal(t, *c.Expect.Left, left)
				}
			})
		}
	}
}
