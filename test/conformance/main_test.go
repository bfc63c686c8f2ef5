package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/sqlqueue"
	"github.com/taskd-go/task/queue/sqlqueue/mysql"
	"github.com/taskd-go/task/queue/sqlqueue/postgres"
	"github.com/taskd-go/task/queue/sqlqueue/sqlite"
)

// What a copy of the test binary shall do, and in which database.
const (
	childRole    = "TASKD_TEST_ROLE"
	childDialect = "TASKD_TEST_DIALECT"
	childFile    = "TASKD_TEST_FILE"
	childPrefix  = "TASKD_TEST_PREFIX"
)

// roles are what a copy of the test binary can do with a queue. What it prints is its result.
var roles = map[string]func(context.Context, *queue.Queue) error{
	"work off":   workOff,
	"replay all": replayAll,
	"limited":    workLimited,
	"unlimited":  workUnlimited,
	"push one":   pushOne,
}

func TestMain(m *testing.M) {
	task.RunIfWorker()
	if role := os.Getenv(childRole); role != "" {
		if err := play(context.Background(), roles[role]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(ctx context.Context, role func(context.Context, *queue.Queue) error) error {
	tables := sqlqueue.Tables{Prefix: os.Getenv(childPrefix)}
	var q *queue.Queue
	switch dialect := os.Getenv(childDialect); dialect {
	case sqlqueue.SQLite.String():
		db, err := sqlite.Open(ctx, os.Getenv(childFile), sqlite.DurabilityNormal)
		if err != nil {
			return err
		}
		defer db.Close()
		store, err := db.Store(sqlqueue.WithTables(tables))
		if err != nil {
			return err
		}
		q = queue.New(store)
	case sqlqueue.PostgreSQL.String():
		db, err := postgres.Open(ctx, postgresDSN())
		if err != nil {
			return err
		}
		defer db.Close()
		store, err := db.Store(tables)
		if err != nil {
			return err
		}
		q = queue.New(store)
	default:
		db, err := mysql.Open(ctx, mysqlDSN())
		if err != nil {
			return err
		}
		defer db.Close()
		store, err := mysql.Store(db, sqlqueue.WithTables(tables))
		if err != nil {
			return err
		}
		q = queue.New(store)
	}
	return role(ctx, q)
}

// child is a copy of the test binary with a role in a database.
func child(t *testing.T, db database, role string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childDialect+"="+db.Dialect.String(),
		childFile+"="+sqliteFile(t, db),
		childPrefix+"="+db.Tables.Prefix)
	cmd.Stderr = os.Stderr
	return cmd
}

// number runs a child that prints one.
func number(t *testing.T, cmd *exec.Cmd) int {
	out, err := cmd.Output()
	assert.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	assert.NoError(t, err, "%s", out)
	return n
}

// workOff works a queue off and prints how many jobs ran.
func workOff(ctx context.Context, q *queue.Queue) error {
	var ran atomic.Int64
	reg, err := job.NewRegistry(job.Func("nothing", func(context.Context, job.Envelope) job.Result {
		ran.Add(1)
		return job.Success()
	}))
	if err != nil {
		return err
	}
	_, err = queue.NewWorker(q, reg, queue.Concurrency(20)).WorkUntilEmpty(ctx, 0)
	fmt.Println(ran.Load())
	return err
}

func pushOne(ctx context.Context, q *queue.Queue) error {
	_, err := q.Push(ctx, nothing{})
	return err
}
