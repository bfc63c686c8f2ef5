package queue

import (
	"github.com/taskd-go/task/queue/backend"
)

// The records and errors of package backend, under the names that programs know.
type (
	// Counts are the jobs of a queue by state, each up to MaxCount.
	Counts = backend.Counts
	// A JobInfo is a live job as its store has it.
	JobInfo = backend.JobInfo
	// A Record is what Inspect finds.
	Record = backend.Record
	// A FailedJob is a dead letter.
	FailedJob = backend.FailedJob
	// A Filter chooses dead letters.
	Filter = backend.Filter

	// A DuplicateError says that a push was refused because its unique key is taken.
	DuplicateError = backend.DuplicateError
	// A TakenError names dead letters that stay dead because their unique key is taken by a live
	// job.
	TakenError = backend.TakenError
	// A ReplayError says why a dead letter stays dead: the store does not take its job.
	ReplayError = backend.ReplayError
	// A ConfigError says which option is wrong, its value and the rule.
	ConfigError = backend.ConfigError
)

// MaxCount is how far Counts counts the jobs of one state.
const MaxCount = backend.MaxCount
