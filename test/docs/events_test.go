package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/tasktype"
)

// The words of an event are one list in the code and in the documentation.
func TestTheListsOfKindsAndReasonsAreOne(t *testing.T) {
	var reasons []string
	for _, r := range tasktype.Reasons() {
		reasons = append(reasons, string(r))
	}
	operations, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	events, ok := between(string(operations), "\n## Events\n", "\n## ")
	require.True(t, ok)
	kindTable, reasonTable, ok := strings.Cut(events, "| reason |")
	require.True(t, ok)

	assert.ElementsMatch(t, reasons, constants(t, "../../tasktype/reason.go", "Reason"), "tasktype.Reasons")
	assert.ElementsMatch(t, reasons, firstColumn(reasonTable), "docs/operations.md")
	kinds := constants(t, "../../tasktype/event.go", "Event")
	assert.ElementsMatch(t, kinds, firstColumn(kindTable), "docs/operations.md")
}

// constants lists the strings that the constants of a file stand for whose names begin with prefix.
func constants(t *testing.T, path, prefix string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, prefix) && len(spec.Values) == 1 {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return true
	})
	return values
}

// firstColumn lists the words in code type in the first column of a table.
func firstColumn(table string) (words []string) {
	for line := range strings.Lines(table) {
		if cell, ok := between(line, "| `", " |"); ok {
			for word := range strings.SplitSeq(cell, ",") {
				words = append(words, strings.Trim(word, " `"))
			}
		}
	}
	return words
}

// between returns the text behind before and ahead of after, or of the end.
func between(s, before, after string) (string, bool) {
	_, s, ok := strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s, ok
}
