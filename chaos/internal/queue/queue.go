package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task/chaos/internal/cli"
)

// A queueChaos is one run of chaos queue.
type queueChaos struct {
	duration time.Duration
	seed     uint64
	jobs     int
	workers  int
	on       grounds
	json     bool
	verbose  bool

	plots   int
	unclean error // what could not be removed
}

// NewCommand returns the command chaos queue.
func NewCommand() *cobra.Command {
	var dsn string
	c := &queueChaos{duration: time.Minute, jobs: 10, workers: 3, on: groundKinds}
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Kill workers and databases at each step of a job, and count",
		Long: fmt.Sprintf(`Chaos pushes jobs into tables of its own, runs them in worker processes of its own, each with a
pool, and kills one kind of victim with SIGKILL at one step of a job's life:

  worker  the process that takes the jobs; another one takes its place
  child   the processes of its pool, or the one that runs the job
  server  the database, which is started again

The first jobs get to the step, where their worker stops and tells; the victim is killed; the other
jobs are of all grounds. When all are done, chaos holds what each run left in a file against what
the database says, and prints for each step and victim:

  lost       jobs that neither ran to their end nor are dead letters; must be 0
  ran again  jobs that did so without having failed, and because of what. A job runs at least once:
             again when it was killed while it ran, when its worker or its database was killed
             before its end was stored, and when its worker could not renew its lease in time
  crashes    attempts that ended so, counted against the jobs; at %d a job is dead
  accounts   right: attempts, crashes and memory of every job agree with what happened to it, in each
             look at the live rows too, no two runs of one job overlapped, and nothing ran after
             its end was stored

Then it kills at random for --duration, while jobs keep coming, and judges in the same way.

With --dsn it uses tables of its own in that database, which it removes in the end, and does not
kill the server. Without, it uses an SQLite file and servers of its own in temporary folders, for
which it needs the programs of PostgreSQL and MariaDB; what is missing is skipped, and said.

Exit codes: 0 nothing lost, everything explained, all accounts right; 1 something is off.`, maxChaosCrashes),
		Example: `  go run ./chaos queue
  go run ./chaos queue --on sqlite --duration 0
  go run ./chaos queue --dsn postgres://user:password@host/database --duration 30s --seed 7 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd, dsn) },
	}
	cmd.Flags().StringVar(&dsn, "dsn", "", "the database (default: databases of its own, see --on)")
	c.addFlags(cmd.Flags())
	return cmd
}

func (c *queueChaos) addFlags(flags *pflag.FlagSet) {
	flags.Var(cli.Duration{P: &c.duration}, "duration", "how long the random kills go on, on each database; 0: none")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the random kills")
	flags.Var(cli.Count{P: &c.jobs, Min: 1, Max: 1000}, "jobs", "jobs at each step")
	flags.Var(cli.Count{P: &c.workers, Min: 1, Max: 16}, "workers", fmt.Sprintf("workers under the random kills, each with a pool of %d processes", chaosJobs))
	flags.Var(&c.on, "on", "databases of its own, sqlite, postgres, mariadb, with commas; not with --dsn")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.BoolVar(&c.verbose, "verbose", false, "print the workers' logs to standard error")
}

// grounds is a choice of databases.
type grounds []string

func (k *grounds) Set(s string) error {
	chosen := strings.Split(s, ",")
	for _, kind := range chosen {
		if !slices.Contains(groundKinds, kind) {
			return fmt.Errorf("want some of %s, with commas", strings.Join(groundKinds, ", "))
		}
	}
	*k = chosen
	return nil
}
func (k *grounds) String() string { return strings.Join(*k, ",") }
func (*grounds) Type() string     { return "names" }

func (c *queueChaos) run(cmd *cobra.Command, dsn string) (err error) {
	given := source{dsn: dsn}
	if dsn != "" && cmd.Flags().Changed("on") {
		return cli.Usagef("--on is for databases of chaos' own; not with --dsn")
	}
	ctx, _, stop := cli.TwoSignals(cmd.Context())
	defer stop()
	dir, remove, err := chaosDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.unclean, remove()) }()

	choices := c.on
	if dsn != "" {
		choices = grounds{kindGiven}
	}
	var tables []*chaosTable
	for _, kind := range choices {
		t, err := c.database(ctx, kind, given, dir)
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
	return c.verdict(cmd, tables)
}

// verdict is the end of a run.
func (c *queueChaos) verdict(cmd *cobra.Command, tables []*chaosTable) error {
	if c.json {
		if err := json.NewEncoder(cmd.OutOrStdout()).Encode(tables); err != nil {
			return err
		}
	}
	off, rows := 0, 0
	for _, t := range tables {
		off, rows = off+t.off(), rows+len(t.Rows)
	}
	switch {
	case off > 0:
		return fmt.Errorf("%d things are off", off)
	case rows == 0:
		return errors.New("no database could be tested")
	case !c.json:
		fmt.Fprintln(cmd.OutOrStdout(), "all is well")
	}
	return nil
}

// database does everything on one.
func (c *queueChaos) database(ctx context.Context, kind string, given source, root string) (t *chaosTable, err error) {
	dir, err := plotDir(root, kind)
	if err != nil {
		return nil, err
	}
	g := givenGround(given, dir)
	if kind != kindGiven {
		g, err = openGround(ctx, kind, dir)
		if errors.Is(err, errNoServer) {
			return &chaosTable{Database: kind, Skipped: []string{"everything: " + err.Error()}}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	defer func() { c.unclean = errors.Join(c.unclean, g.close()) }()
	t = &chaosTable{Database: g.name}
	if err := c.matrix(ctx, g, t); err != nil {
		return t, err
	}
	if c.duration > 0 && ctx.Err() == nil {
		err = c.storm(ctx, g, t)
	}
	return t, err
}
