package queue

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A chaosRow is what came of one kind of victim at one step.
type chaosRow struct {
	Step       string         `json:"step"`
	Victim     string         `json:"victim"`
	Kills      int            `json:"kills"`
	Jobs       int            `json:"jobs"`       // whose push was answered
	Unanswered int            `json:"unanswered"` // pushes that were not
	Lost       int            `json:"lost"`
	Again      int            `json:"again"`   // jobs that ran again without having failed
	Because    map[string]int `json:"because"` // why they did
	Crashes    int            `json:"crashes"` // counted against jobs
	Dead       int            `json:"dead"`
	Off        []string       `json:"off,omitempty"`

	mayAgain bool // the death of the victim there lets the jobs that were held run again
}

func (r *chaosRow) offf(format string, args ...any) {
	r.Off = append(r.Off, fmt.Sprintf(format, args...))
}

// more adds what was said elsewhere, each once.
func (r *chaosRow) more(off []string) {
	for _, what := range off {
		if !slices.Contains(r.Off, what) {
			r.Off = append(r.Off, what)
		}
	}
}

// A chaosTable is what came of one database.
type chaosTable struct {
	Database string      `json:"database"`
	Skipped  []string    `json:"skipped,omitempty"`
	Rows     []*chaosRow `json:"rows"`
}

func (t *chaosTable) off() (n int) {
	for _, r := range t.Rows {
		n += len(r.Off)
	}
	return n
}

func (t *chaosTable) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n", t.Database)
	if len(t.Rows) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  step\tvictim\tkills\tjobs\tlost\tran again\tbecause\tcrashes\tdead\taccounts")
		for _, r := range t.Rows {
			fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%s\n", r.Step, r.Victim, r.Kills, r.Jobs, r.Lost, r.Again, reasons(r.Because),
				r.Crashes, r.Dead, r.accounts())
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, why := range t.Skipped {
		fmt.Fprintf(out, "  skipped: %s\n", why)
	}
	for _, r := range t.Rows {
		for _, what := range r.Off {
			fmt.Fprintf(out, "  OFF: %s, %s: %s\n", r.Step, r.Victim, what)
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}

func (r *chaosRow) accounts() string {
	if len(r.Off) > 0 {
		return "OFF"
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
