package queue

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// atRandom is the step of the row of random kills.
const atRandom = "at random"

// A row is the result of the kills of one target at one step.
type row struct {
	Step       string         `json:"step"`
	Target     string         `json:"target"`
	Kills      int            `json:"kills"`
	Jobs       int            `json:"jobs"`       // whose push succeeded
	Unanswered int            `json:"unanswered"` // pushes that failed; the job may be stored
	Lost       int            `json:"lost"`
	Again      int            `json:"again"`   // jobs that ran again without having failed
	Because    map[string]int `json:"because"` // why they did
	Crashes    int            `json:"crashes"` // counted against jobs
	Dead       int            `json:"dead"`
	LeasesLost int            `json:"leasesLost"` // by workers that lived on, which a busy machine causes
	Problems   []string       `json:"problems,omitempty"`
	Timeline   []string       `json:"timeline,omitempty"` // where there are problems

	mayAgain bool // the job at the step may run again after the death of the target
}

// problem records a check that failed.
func (r *row) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// add adds problems that were found elsewhere, each once.
func (r *row) add(problems []string) {
	for _, what := range problems {
		if !slices.Contains(r.Problems, what) {
			r.Problems = append(r.Problems, what)
		}
	}
}

// A table is the result of one database.
type table struct {
	Database string   `json:"database"`
	Skipped  []string `json:"skipped,omitempty"`
	Rows     []*row   `json:"rows"`
}

func (t *table) problems() (n int) {
	for _, r := range t.Rows {
		n += len(r.Problems)
	}
	return n
}

func (t *table) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n", t.Database)
	if len(t.Rows) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  step\ttarget\tkills\tjobs\tlost\tran again\tbecause\tcrashes\tdead\taccounts")
		for _, r := range t.Rows {
			fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%s\n",
				r.Step, r.Target, r.Kills, r.Jobs, r.Lost, r.Again, reasons(r.Because), r.Crashes, r.Dead, r.accounts())
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, why := range t.Skipped {
		fmt.Fprintf(out, "  skipped: %s\n", why)
	}
	for _, r := range t.Rows {
		for _, what := range r.Problems {
			fmt.Fprintf(out, "  PROBLEM: %s, %s: %s\n", r.Step, r.Target, what)
		}
		for _, line := range r.Timeline {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}

func (r *row) accounts() string {
	if len(r.Problems) > 0 {
		return "WRONG"
	}
	return "right"
}

func reasons(because map[string]int) string {
	if len(because) == 0 {
		return "-"
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(because)) {
		parts = append(parts, fmt.Sprintf("%d %s", because[why], why))
	}
	return strings.Join(parts, ", ")
}
