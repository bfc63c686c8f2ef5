package conformance

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/queue"
)

// A retry of all loads 300,000 dead letters into memory. Here it takes less than 50 MB, and when it
// is killed half way the next one goes on, with no job lost or doubled.
func TestRetryOfAllIsChunkedAndResumable_Row57(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			n := scale(300_000, 4_000)
			bury(t, db, n)
			analyze(t, db)
			first := child(t, db, "replay all")
			require.NoError(t, first.Start())
			require.Eventually(t, func() bool { return count(t, db, "failed_jobs") < n/2 }, 10*time.Minute, 10*time.Millisecond)
			require.NoError(t, first.Process.Kill())
			_ = first.Wait()
			var left, back int // at one moment: the server may still be at the last transaction
			both := "SELECT (SELECT COUNT(*) FROM %[1]sfailed_jobs), (SELECT COUNT(*) FROM %[1]sjobs)"
			require.NoError(t, db.SQL.QueryRowContext(t.Context(), fmt.Sprintf(both, db.Tables.Prefix)).Scan(&left, &back))
			require.Positive(t, left)
			assert.Equal(t, n, left+back, "none is lost or doubled after the kill")

			begin := time.Now()
			grown := number(t, child(t, db, "replay all"))
			t.Logf("%d of %d letters in %s, memory grown by %d KiB", left, n, time.Since(begin).Round(time.Millisecond), grown)
			assert.Less(t, grown, 50<<10)
			assert.Zero(t, count(t, db, "failed_jobs"))
			var alive, low, high int
			row := db.SQL.QueryRowContext(t.Context(), "SELECT COUNT(*), MIN(id), MAX(id) FROM "+db.Tables.Prefix+"jobs"+
				" WHERE reserved_token IS NULL AND attempts = 0")
			require.NoError(t, row.Scan(&alive, &low, &high))
			assert.Equal(t, []int{n, 20_000_000_001, 20_000_000_000 + n}, []int{alive, low, high}, "each has its id again")
		})
	}
}

// replayAll replays all dead letters and prints by how many KiB the process grew.
func replayAll(ctx context.Context, q *queue.Queue) error {
	before := memory("VmRSS")
	_, err := q.RetryAll(ctx, queue.Filter{})
	fmt.Println(memory("VmHWM") - before)
	return err
}

// memory reads a line of the process's status in KiB; 0 where there is none.
func memory(name string) int {
	status, _ := os.ReadFile("/proc/self/status")
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			n, _ := strconv.Atoi(strings.Fields(value)[0])
			return n
		}
	}
	return 0
}
