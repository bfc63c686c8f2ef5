package queue

import (
	"github.com/taskd-go/task/queue/backend"
)

// Programs use the records and errors of package backend under these names.
type (
	// Counts are the jobs of a queue by state, each up to MaxCount.
	Counts = backend.Counts
	// A JobInfo describes a live job.
	JobInfo = backend.JobInfo
	// A Record is what Inspect returns.
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
	// A ReplayError says why a dead letter stays dead: the store refused its job.
	ReplayError = backend.ReplayError
	// A ConfigError says which option is wrong, its value and the rule.
	ConfigError = backend.ConfigError
)

// MaxCount is the highest number in Counts: that many jobs of a state or more.
const MaxCount = backend.MaxCount
