package sqlqueue

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A worker that runs for weeks must not keep a statement for each list of jobs that it has seen.
func TestStatementsThatAreKeptHaveAnEnd(t *testing.T) {
	for _, d := range []Dialect{SQLite, PostgreSQL, MySQL} {
		s, err := New(&sql.DB{}, d)
		require.NoError(t, err)
		for i := range int64(1000) {
			cond, _ := s.reservations([]int64{i, i + 1}, []string{"a.1", "a.2"})
			s.text("DELETE FROM {jobs} WHERE " + cond)
		}
		kept := 0
		s.texts.Range(func(any, any) bool { kept++; return true })
		assert.LessOrEqual(t, kept, 1, d)
	}
}
