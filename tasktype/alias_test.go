package tasktype_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/tasktype"
)

// A name is what a package says about one exported constant or type.
type name struct {
	comment string // beside a constant, above a type
	fields  string // of a struct: its declaration without tags
	alias   bool
}

// go doc shows an alias without the fields behind it, so package task repeats them in its comments.
func TestPackageTaskDocumentsEachName(t *testing.T) {
	root := names(t, "..")
	for n, own := range names(t, ".") {
		alias, ok := root[n]
		if !assert.True(t, ok, "package task has no %s", n) {
			continue
		}
		assert.True(t, alias.alias, "%s is not tasktype's in package task", n)
		if own.fields == "" {
			assert.Contains(t, alias.comment, strings.TrimSpace(own.comment), n)
			continue
		}
		indented := "\n\t" + strings.ReplaceAll(strings.TrimSpace(own.fields), "\n", "\n\t") + "\n"
		assert.Contains(
			t,
			strings.ReplaceAll(alias.comment, "\n\t\n", "\n\n"),
			strings.ReplaceAll(indented, "\n\t\n", "\n\n"),
			n,
		)
	}
}

func TestReasonsListsEachReason(t *testing.T) {
	var constants []string
	for n := range names(t, ".") {
		if strings.HasPrefix(n, "Reason") && n != "Reason" {
			constants = append(constants, n)
		}
	}
	assert.Len(t, tasktype.Reasons(), len(constants))
	seen := map[tasktype.Reason]bool{}
	for _, r := range tasktype.Reasons() {
		assert.False(t, seen[r], "%s is listed twice", r)
		seen[r] = true
	}
}

func names(t *testing.T, dir string) map[string]name {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	all := map[string]name{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				addNames(t, all, g, text)
			}
		}
	}
	return all
}

func addNames(t *testing.T, all map[string]name, d *ast.GenDecl, file []byte) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			if d.Tok != token.CONST || !spec.Names[0].IsExported() {
				continue
			}
			n := name{comment: spec.Comment.Text()}
			if len(spec.Values) == 1 {
				_, n.alias = spec.Values[0].(*ast.SelectorExpr)
			}
			all[spec.Names[0].Name] = n
		case *ast.TypeSpec:
			n := name{comment: d.Doc.Text(), alias: spec.Assign.IsValid()}
			if _, ok := spec.Type.(*ast.StructType); ok {
				n.fields = withoutTags(t, file[spec.Pos()-1:spec.End()-1])
			} else if !n.alias {
				n.comment, _, _ = strings.Cut(n.comment, ".")
			}
			all[spec.Name.Name] = n
		}
	}
}

var tag = regexp.MustCompile(" *`json:\"[^`]*`")

// withoutTags returns the declaration of a struct as gofmt writes it without tags.
func withoutTags(t *testing.T, decl []byte) string {
	t.Helper()
	text, err := format.Source(append([]byte("package p\n\ntype "), tag.ReplaceAll(decl, nil)...))
	require.NoError(t, err)
	_, out, _ := strings.Cut(string(text), "\n\n")
	return out
}
