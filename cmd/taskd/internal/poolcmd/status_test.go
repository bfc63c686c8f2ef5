package poolcmd

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task"
)

// The printed status has a column for each counter of a worker.
func TestStatusPrintsEachCounter(t *testing.T) {
	row := task.WorkerStatus{PID: 1}
	v := reflect.ValueOf(&row).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(uint64(7000 + i))
		}
	}
	var out strings.Builder
	require.NoError(t, printRows(&out, []task.WorkerStatus{row}))
	header, _, _ := strings.Cut(out.String(), "\n")
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).Kind() != reflect.Uint64 || name == "Generation" { // which --json has
			continue
		}
		assert.Contains(t, strings.Fields(header), strings.ToLower(name))
		assert.Contains(t, out.String(), fmt.Sprint(7000+i), name)
	}
}
