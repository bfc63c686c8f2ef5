package docs_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

// Each column of the status has a JSON key and a row in docs/operations.md.
func TestEachColumnOfTheStatusIsDocumented(t *testing.T) {
	operations, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	table, ok := between(string(operations), "| column | meaning |\n", "\n\n")
	require.True(t, ok)
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		cell, _ := between(line, "| ", " |")
		for word := range strings.SplitSeq(cell, ", ") {
			documented[word] = true
		}
	}
	for f := range fieldsOf(reflect.TypeFor[task.WorkerStatus]()) {
		key := f.Tag.Get("json")
		want := strings.ToLower(f.Name)
		if f.Name != "PID" {
			want = string(unicode.ToLower(rune(f.Name[0]))) + f.Name[1:]
		}
		assert.Equal(t, want, key)
		assert.True(t, documented[key], "docs/operations.md has no row for %s", key)
	}
}

func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}
