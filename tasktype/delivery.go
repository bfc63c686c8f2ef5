package tasktype

// A Delivery says what is known about the task of a failed call, and so whether the caller may try
// again.
type Delivery int

// The deliveries.
const (
	MayHaveRun Delivery = iota // nothing is proved; the task may still be running
	NotRun                     // the task did not run and will not
	Ran                        // the task ran to its end
)

// String returns "may have run", "not run" or "ran".
func (d Delivery) String() string {
	switch d {
	case NotRun:
		return "not run"
	case Ran:
		return "ran"
	default:
		return "may have run"
	}
}
