package job

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
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
		{"plain", plain, "*errors.errorString"},
		{"wrapped", fmt.Errorf("query: %w", plain), "*errors.errorString"},
		{"permanent, with a reason", &DeadError{Reason: ReasonTimeout, Err: Permanent(plain)}, "*errors.errorString"},
		{"a reason alone", &DeadError{Reason: ReasonCrashed}, "*job.DeadError"},
		{"joined", errors.Join(plain, plain), "*errors.joinError"},
		{"its own class", fmt.Errorf("send: %w", classified{plain}), "Mail.Down"},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, ErrorClass(tt.err)) })
	}
}
