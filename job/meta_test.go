package job

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
