package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/internal/textcut"
)

type classified struct{ error }

func (classified) Class() string { return "Mail.Down" }

func TestErrorClass(t *testing.T) {
	t.Parallel()
	plain := errors.New("down")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"none", nil, "error"},
		{"plain", plain, "down"},
		{"wrapped", fmt.Errorf("query: %w", plain), "down"},
		{"permanent, with a reason", &DeadError{Reason: ReasonTimeout, Err: Permanent(plain)}, "timeout"},
		{"a reason alone", &DeadError{Reason: ReasonCrashed}, "crashed"},
		{"joined", errors.Join(plain, plain), "down"},
		{"its own class", fmt.Errorf("send: %w", classified{plain}), "Mail.Down"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, ErrorClass(tt.err)) })
	}
}

var errLocked = errors.New("the order is locked")

func TestTheErrorClassGroupsFaults_Found41(t *testing.T) {
	t.Parallel()
	missing := &fs.PathError{Op: "open", Path: "/a", Err: fs.ErrNotExist}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"the reason first", &DeadError{Reason: ReasonDecode, Err: missing}, "decode"},
		{"before a class of its own", &DeadError{Reason: ReasonPanic, Err: classified{missing}}, "panic"},
		{"a wrapped reason", fmt.Errorf("order 1: %w", &DeadError{Reason: ReasonTimeout, Err: missing}), "timeout"},
		{"a reason that says nothing", &DeadError{Reason: ReasonFailed, Err: missing}, "*fs.PathError"},
		{"a reason that says nothing, alone", &DeadError{Reason: ReasonFailed}, "failed"},
		{"a sentinel", fmt.Errorf("order 1: %w", errLocked), "the order is locked"},
		{"a type in a chain", fmt.Errorf("a: %w", Permanent(fmt.Errorf("b: %w", missing))), "*fs.PathError"},
		{"a type in a branch", errors.Join(errLocked, fmt.Errorf("%w, %w", errLocked, missing)), "*fs.PathError"},
		{"texts in branches", fmt.Errorf("%w, %w", errLocked, errors.New("down")), "the order is locked"},
		{"a wrap of nothing", fmt.Errorf("order 1: %w", nil), "order : %!w(<nil>)"},
		{"a number", errors.New("order 17 is locked"), "order is locked"},
		{"an id", errors.New("order ord_8f3a-11 is locked"), "order is locked"},
		{"a UUID", errors.New("no abcdef12-aaaa-bbbb-cccc-0123456789ab here"), "no here"},
		{"an address", errors.New("dial 10.0.0.7:80: refused"), "dial : refused"},
		{"a time", errors.New("late at 2026-01-31T12:00:00Z by 1.5s, 3%"), "late at by ,"},
		{"quoted parts", fmt.Errorf("no %q, `x`, 'y z' or “z”", `a"b`), "no , , or"},
		{"apostrophes", errors.New("can't open the user's file"), "can't open the user's file"},
		{"nothing else", errors.New("42"), "error"},
		{"nothing at all", errors.New(""), "error"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, ErrorClass(tt.err)) })
	}
	long := ErrorClass(errors.New(strings.Repeat("é", 1<<20)))
	assert.LessOrEqual(t, len(long), maxClassText)
	assert.True(t, strings.HasSuffix(long, textcut.Mark))
}

func TestDeadLettersHaveTheClassOfTheirFault_Found41(t *testing.T) {
	t.Parallel()
	r := &Runner{Policy: RetryPolicy{MaxAttempts: 1}, Logger: slog.New(slog.DiscardHandler)}
	undecodable := Typed("t", func(context.Context, struct{ Secret int }, Envelope) Result { return Success() })
	for _, tt := range []struct {
		name string
		h    Handler
		want string
	}{
		{"no handler", nil, "unregistered"},
		{"a payload that does not fit", undecodable, "decode"},
		{"a panic", Func("t", func(context.Context, Envelope) Result { panic("order 17") }), "panic"},
		{"an error", answering(Retry(errors.New("order 17 is locked"))), "order is locked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := NewMemoryDeadLetters()
			_, err := r.Run(t.Context(), tt.h, envelope(t, 1, 1), nil, DeadLetterTo(store, ""))
			require.NoError(t, err)
			page, _, err := store.Page(t.Context(), "", "", 1)
			require.NoError(t, err)
			require.Len(t, page, 1)
			assert.Equal(t, tt.want, page[0].ErrorClass)
		})
	}
	_, err := Decode([]byte("{"))
	assert.Equal(t, "decode", RawDeadLetter("", []byte("{"), err).ErrorClass)
}
