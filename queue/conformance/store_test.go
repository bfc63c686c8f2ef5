package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/taskd-go/task/middleware"
	"github.com/taskd-go/task/middleware/storetest"
	"github.com/taskd-go/task/queue"
)

// TestStore is the contract of middleware.Store. A test moves its clock by moving what it stored back.
func TestStore(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (middleware.Store, func(time.Duration)) {
				db := d.open(t)
				opts := []queue.Option{queue.WithTables(db.Tables)}
				if db.Read != nil {
					opts = append(opts, queue.ReadFrom(db.Read))
				}
				q, err := queue.New(db.SQL, db.Dialect, opts...)
				require.NoError(t, err)
				return q.Store(), func(d time.Duration) {
					for statement, table := range map[string]string{"UPDATE %s SET at = at - %d": "queue_holds", "UPDATE %s SET ends = ends - %d": "queue_locks"} {
						_, err := db.SQL.Exec(fmt.Sprintf(statement, db.Tables.Prefix+table, d.Milliseconds()))
						require.NoError(t, err)
					}
				}
			})
		})
	}
}
