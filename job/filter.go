package job

import (
	"slices"
	"time"
)

// A Filter chooses dead letters, for [Replay] and for a queue. A letter must meet every condition
// that is set; the zero Filter chooses them all. Limit and what follows it do not choose; they say
// how a replay runs.
type Filter struct {
	Queue        string
	IDs          []string // of the letters
	Types        []string // of the jobs
	ErrorClasses []string // see [ErrorClass]
	Reasons      []Reason
	Since, Until time.Time // died at Since or later and before Until; zero: no bound

	// Limit is the most letters that one run replays. Below 1, Replay takes one, or all of IDs; a
	// queue takes all.
	Limit int

	Rate   float64 // the most letters a second, evenly spread; not above 0: no limit
	DryRun bool    // count the letters and replay none

	// Progress, if not nil, is called in the course of a replay: done letters are dealt with, of as
	// many as of when it began.
	Progress func(done, of int)

	// OnEvent, if not nil, is called by Replay for each letter that it replayed or set aside. A
	// queue does not call it.
	OnEvent func(Event)
}

// Match reports whether d meets the conditions.
func (f Filter) Match(d DeadLetter) bool {
	at := time.Unix(d.At, 0)
	return (f.Queue == "" || f.Queue == d.Queue) &&
		anyOf(f.IDs, d.ID) &&
		anyOf(f.Types, d.Job.JobType) &&
		anyOf(f.ErrorClasses, d.ErrorClass) &&
		anyOf(f.Reasons, d.Reason) &&
		(f.Since.IsZero() || !at.Before(f.Since)) &&
		(f.Until.IsZero() || at.Before(f.Until))
}

// anyOf reports whether value is in list; an empty list has every value.
func anyOf[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}
