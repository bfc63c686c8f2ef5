// Package queue kills workers, processes of their pools and database servers at each step of a
// job's life, and checks that no job is lost and none runs again without a reason.
package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task/chaos/internal/cli"
	"github.com/taskd-go/task/chaos/internal/dbserver"
	"github.com/taskd-go/task/chaos/internal/rundir"
	"github.com/taskd-go/task/internal/signals"
)

// A chaos is one run of the command.
type chaos struct {
	duration time.Duration
	seed     uint64
	jobs     int
	workers  int
	on       kinds
	json     bool
	verbose  bool

	workloads int   // so many were made
	unclean   error // what could not be removed
}

// NewCommand returns the command chaos queue.
func NewCommand() *cobra.Command {
	var dsn string
	c := &chaos{duration: time.Minute, jobs: 10, workers: 3, on: allKinds}
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Kill workers and databases at each step of a job, and count",
		Long: fmt.Sprintf(`Chaos pushes jobs into its own tables, runs them in its own worker processes, each with
a pool, and kills one kind of target with SIGKILL at one step of a job's life:

  worker  the process that takes the jobs; another one replaces it
  child   the processes of its pool, or the one that runs the job
  server  the database, which is started again

The first job gets to the step, where its worker stops and reports; the target is killed; the other
jobs succeed, fail once, or fail always. When all are done, chaos compares what each run wrote to a
file with what the database says, and prints for each step and target:

  lost       jobs that neither ran to their end nor are dead letters; must be 0
  ran again  jobs that ran again without having failed, and why. A job runs at least once: again when
             it was killed while it ran, when its worker or its database was killed before its end was
             stored, and when its worker could not renew its lease in time
  crashes    attempts that ended so, counted against the jobs; with %d a job is dead
  accounts   right: attempts, crashes and memory of every job agree with what happened to it, also
             while it was live; no two runs of one job overlapped, and none began after its end was
             stored

Then it kills at random for --duration, while jobs keep coming, and checks the same.

With --dsn it uses tables of its own in that database, removes them at the end, and does not kill the
server. Without it, chaos uses an SQLite file and starts its own servers in a temporary folder, for
which it needs the programs of PostgreSQL and MariaDB; it reports what it skipped without them.

Exit codes: 0 nothing lost, everything explained, all accounts right; 1 a check failed.`, maxCrashes),
		Example: `  go run ./chaos queue
  go run ./chaos queue --on sqlite --duration 0
  go run ./chaos queue --dsn postgres://user:password@host/database --duration 30s --seed 7 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd, dsn) },
	}
	cmd.Flags().StringVar(&dsn, "dsn", "",
		"the database: sqlite:/path/file.db, postgres://… or mysql://… (default: see --on)")
	c.addFlags(cmd.Flags())
	return cmd
}

func (c *chaos) addFlags(flags *pflag.FlagSet) {
	flags.Var(cli.Duration{P: &c.duration}, "duration", "how long the random kills last, on each database; 0: none")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the random kills")
	flags.Var(cli.Count{P: &c.jobs, Min: 1, Max: 1000}, "jobs", "jobs at each step")
	flags.Var(cli.Count{P: &c.workers, Min: 1, Max: 16}, "workers",
		fmt.Sprintf("workers under the random kills, each with a pool of %d processes", randomConcurrency))
	flags.Var(&c.on, "on", "databases that chaos makes: sqlite, postgres, mariadb, separated by commas; not with --dsn")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.BoolVar(&c.verbose, "verbose", false, "print the workers' logs to standard error")
}

// kinds is the flag that chooses databases.
type kinds []string

func (k *kinds) Set(s string) error {
	chosen := strings.Split(s, ",")
	for _, kind := range chosen {
		if !slices.Contains(allKinds, kind) {
			return fmt.Errorf("want some of %s, separated by commas", strings.Join(allKinds, ", "))
		}
	}
	*k = chosen
	return nil
}
func (k *kinds) String() string { return strings.Join(*k, ",") }
func (*kinds) Type() string     { return "names" }

func (c *chaos) run(cmd *cobra.Command, dsn string) (err error) {
	chosen := c.on
	if dsn != "" {
		if cmd.Flags().Changed("on") {
			return cli.Usagef("--on is for databases that chaos makes; not with --dsn")
		}
		if err := checkDSN(dsn); err != nil {
			return err
		}
		if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok { // the workers run in other folders
			if path, err = filepath.Abs(strings.TrimPrefix(path, "//")); err != nil {
				return err
			}
			dsn = "sqlite:" + path
		}
		chosen = kinds{kindGiven}
	}
	ctx, _, stop := signals.Two(cmd.Context())
	defer stop()
	dir, err := rundir.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.unclean, dir.Close()) }()

	var tables []*table
	for _, kind := range chosen {
		t, err := c.database(ctx, kind, dsn, filepath.Join(dir.Path, kind))
		if ctx.Err() != nil {
			return cli.Interrupted()
		}
		if err != nil {
			return err
		}
		if tables = append(tables, t); !c.json {
			if err := t.print(cmd.OutOrStdout()); err != nil {
				return err
			}
		}
	}
	return c.conclude(cmd, tables)
}

// conclude prints how the run ended, and returns an error if a check failed.
func (c *chaos) conclude(cmd *cobra.Command, tables []*table) error {
	if c.json {
		if err := json.NewEncoder(cmd.OutOrStdout()).Encode(tables); err != nil {
			return err
		}
	}
	problems, rows := 0, 0
	for _, t := range tables {
		problems, rows = problems+t.problems(), rows+len(t.Rows)
	}
	switch {
	case problems > 0:
		return fmt.Errorf("problems found: %d", problems)
	case rows == 0:
		return errors.New("no database could be tested")
	case !c.json:
		fmt.Fprintln(cmd.OutOrStdout(), "all checks passed")
	}
	return nil
}

// database runs everything on one database. dir is a new folder for its files.
func (c *chaos) database(ctx context.Context, kind, dsn, dir string) (t *table, err error) {
	f, err := openFixture(ctx, kind, dsn, dir)
	if errors.Is(err, dbserver.ErrNoProgram) {
		return &table{Database: kind, Skipped: []string{"everything: " + err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.close()
	t = &table{Database: f.name}
	if err := c.matrix(ctx, f, t); err != nil {
		return t, err
	}
	if c.duration > 0 && ctx.Err() == nil {
		err = c.random(ctx, f, t)
	}
	return t, err
}
