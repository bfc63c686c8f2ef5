package job

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/textcut"
)

func TestFailuresTravelInTheEnvelope(t *testing.T) {
	t.Parallel()
	e := envelope(t, 1, 5)
	assert.Empty(t, Failures(e))
	first := AttemptError{Attempt: 1, At: 7, Reason: ReasonCrashed, Error: "killed"}
	second := AttemptError{Attempt: 2, At: 8, Reason: ReasonFailed, Error: "down"}
	one := WithFailure(e, first, MaxFailures)
	two := WithFailure(one, second, MaxFailures)
	assert.Empty(t, Failures(e), "the job that it was made from is as before")
	assert.Equal(t, []AttemptError{first}, Failures(one))
	assert.Equal(t, []AttemptError{first, second}, Failures(two))
	assert.Equal(t, []AttemptError{second}, Failures(WithFailure(one, second, 1)), "the newest stay")
	assert.Empty(t, Failures(WithFailure(one, second, -1)))

	assert.Empty(t, Failures(WithoutHistory(two)))
	assert.Equal(t, e.Meta, WithoutHistory(two).Meta)

	data, err := two.Encode()
	require.NoError(t, err)
	back, err := Decode(data)
	require.NoError(t, err)
	assert.Equal(t, two, back)
	assert.Equal(t, []AttemptError{first, second}, Failures(back))

	for _, odd := range []any{"text", json.Number("5"), func() {}, []any{"text"}} {
		assert.Empty(t, Failures(Envelope{Meta: map[string]any{MetaErrors: odd}}))
	}
}

func TestAReplayedJobStartsAgain(t *testing.T) {
	t.Parallel()
	failed := WithFailure(envelope(t, 2, 2), AttemptError{Attempt: 1, Reason: ReasonPanic}, 5)
	d := NewDeadLetter("", failed, errors.New("down"))
	d.Replays = 2
	e := d.Replayed()
	assert.Equal(t, 3, Replays(e))
	assert.Equal(t, 1, e.Attempt)
	assert.Equal(t, json.Number("3"), e.Meta[MetaReplays])
	assert.Equal(t, d.Attempts, Failures(e))
	assert.NotContains(t, d.Job.Meta, MetaReplays, "the letter is as before")
}

// A queue calls WithFailure for a job whose worker has crashed: that job ran, so its deferrals in a
// row are over.
func TestAFailureEndsTheDeferralsInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Logger: slog.New(slog.DiscardHandler)}
		deferred := r.Decide(t.Context(), answering(Defer(time.Second)), envelope(t, 1, 5)).Envelope
		require.Contains(t, deferred.Meta, MetaDeferredSince)

		crashed := WithFailure(deferred, AttemptError{Attempt: 1, Reason: ReasonCrashed, Error: "killed"}, MaxFailures)
		assert.NotContains(t, crashed.Meta, MetaDeferredSince)
		assert.Contains(t, deferred.Meta, MetaDeferredSince, "the job that it was made from is as before")

		time.Sleep(25 * time.Hour)
		d := r.Decide(t.Context(), answering(Defer(time.Second)), crashed)
		assert.Equal(t, Deferred, d.Outcome, "its first deferral in a row is this one: %v", d.Err)
	})
}

func TestALongPanicIsCutWithAMark_Found86(t *testing.T) {
	t.Parallel()
	r := &Runner{KeepErrors: MaxFailures, Logger: slog.New(slog.DiscardHandler)}
	h := Func("t", func(context.Context, Envelope) Result { panic(strings.Repeat("é", 5<<19)) })
	d := r.Decide(t.Context(), h, envelope(t, 1, 5))
	kept := Failures(d.Envelope)
	require.Len(t, kept, 1)
	assert.Equal(t, ReasonPanic, kept[0].Reason)
	text := kept[0].Error
	assert.LessOrEqual(t, len(text), maxErrorText)
	assert.True(t, utf8.ValidString(text))
	assert.True(t, strings.HasPrefix(text, "éé"))
	assert.True(t, strings.HasSuffix(text, textcut.Mark), "a reader sees that it is not the whole text")
}
