package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/taskd-go/task"
)

// A pkg is a package of the workspace, as go list describes it.
type pkg struct {
	ImportPath string
	Imports    []string
}

// Each package stands in the table of docs/design.md and imports only from its own floor and lower
// ones.
func TestPackagesImportDownwards(t *testing.T) {
	t.Parallel()
	floors := floorsOf(t)
	used := map[string]bool{}
	for _, p := range packages(t) {
		floor, row, ok := find(floors, p.ImportPath)
		if !assert.True(t, ok, "docs/design.md has no row for %s", p.ImportPath) {
			continue
		}
		used[row] = true
		for _, i := range p.Imports {
			if below, _, ok := find(floors, i); ok && below > floor {
				t.Errorf("%s, floor %d, imports %s, floor %d", p.ImportPath, floor, i, below)
			}
		}
	}
	for row := range floors {
		assert.True(t, used[row], "docs/design.md has a row for %s, which does not exist", row)
	}
}

// The packages in the second table of docs/design.md do not import what stands beside them.
func TestPackagesDoWithout(t *testing.T) {
	t.Parallel()
	forbidden := map[string][]string{}
	for _, cells := range table(t, "| package | does not import |") {
		for _, p := range names(cells[0]) {
			forbidden[p] = append(forbidden[p], names(cells[1])...)
		}
	}
	require.NotEmpty(t, forbidden)
	for _, p := range packages(t) {
		for _, i := range forbidden[p.ImportPath] {
			assert.NotContains(t, p.Imports, i, p.ImportPath)
		}
		delete(forbidden, p.ImportPath)
	}
	assert.Empty(t, forbidden, "packages that do not exist")
}

// find returns the floor of a package and the row that names it: itself, or a folder above it that
// ends in "/...".
func find(floors map[string]int, path string) (floor int, row string, ok bool) {
	if floor, ok := floors[path]; ok {
		return floor, path, true
	}
	for dir := path; strings.HasPrefix(dir, module+"/"); dir = dir[:strings.LastIndex(dir, "/")] {
		if floor, ok := floors[dir+"/..."]; ok {
			return floor, dir + "/...", true
		}
	}
	return 0, "", false
}

func floorsOf(t *testing.T) map[string]int {
	t.Helper()
	floors := map[string]int{}
	for _, cells := range table(t, "| floor | package | what it is for |") {
		floor, err := strconv.Atoi(cells[0])
		require.NoError(t, err)
		for _, p := range names(cells[1]) {
			assert.NotContains(t, floors, p, "two rows")
			floors[p] = floor
		}
	}
	require.NotEmpty(t, floors)
	return floors
}

// table returns the cells of the table in docs/design.md that begins with header.
func table(t *testing.T, header string) (rows [][]string) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	require.NoError(t, err)
	_, body, ok := strings.Cut(string(doc), header+"\n")
	require.True(t, ok, "docs/design.md has no table %s", header)
	for i, line := range strings.Split(body, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 0 { // the line below the header
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for c := range cells {
			cells[c] = strings.TrimSpace(cells[c])
		}
		rows = append(rows, cells)
	}
	return rows
}

var code = regexp.MustCompile("`([^`]+)`")

// names returns the import paths in a cell. `task` is the root package; a path whose folder the root
// has is the module's, any other one is the standard library's.
func names(cell string) (paths []string) {
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		switch path := m[1]; {
		case path == "task":
			paths = append(paths, module)
		case isFolder(strings.TrimSuffix(path, "/...")):
			paths = append(paths, module+"/"+path)
		default:
			paths = append(paths, path)
		}
	}
	return paths
}

func isFolder(path string) bool {
	info, err := os.Stat(filepath.Join(root, path))
	return err == nil && info.IsDir()
}

// packages lists the packages of all modules of the workspace.
func packages(t *testing.T) (all []pkg) {
	t.Helper()
	var work struct{ Use []struct{ DiskPath string } }
	require.NoError(t, json.Unmarshal(output(t, root, "work", "edit", "-json"), &work))
	require.NotEmpty(t, work.Use)
	for _, m := range work.Use {
		list := json.NewDecoder(bytes.NewReader(output(t, filepath.Join(root, m.DiskPath), "list", "-json=ImportPath,Imports", "./...")))
		for {
			var p pkg
			err := list.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			all = append(all, p)
		}
	}
	return all
}

func output(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	return out
}
