package supervisor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const envHost = "SUPERVISOR_TEST_HOST"

func host() int { return 0 }

func TestPoolStartsServesAndEnds(t *testing.T) {
	p := startPool(t)
	assert.NotEqual(t, p.pid(0), p.pid(1))
	for i, s := range p.Table().Status() {
		assert.Equal(t, i, s.Index)
		assert.True(t, s.Accepting)
		assert.Equal(t, p.pid(i), s.PID)
	}
	require.NoError(t, p.shutdown())
	assert.True(t, p.Table().Closed())
}
