package backend

import (
	"context"
	"time"
)

// A Backend is a store of jobs. Its methods are called concurrently. Package queue never closes it:
// that is up to the program that opened it.
type Backend interface {
	// Name returns a word for the kind of store, such as "postgres", for logs and errors.
	Name() string

	// Can returns what the store can do. It never changes.
	Can() Capabilities

	// Push stores messages and returns a result for each, in their order. A message with a
	// UniqueKey comes alone. The program gets the errors as they are, so an error must say which
	// job was refused.
	Push(ctx context.Context, messages []Message) []Pushed

	// Open returns a Consumer for one run of a worker. If it fails, the worker tries again after a
	// pause, unless the error wraps ErrSetup or ErrUnsupported.
	Open(ctx context.Context, s Session) (Consumer, error)
}

// Capabilities say which options of a push a store supports. Package queue refuses a push that
// needs another one, with ErrUnsupported. It reads Delay, Priority and Unique; Atomic is for
// programs.
type Capabilities struct {
	Delay    bool // a message is not delivered before its Delay has passed
	Priority bool // the due messages of a queue are delivered in the order of their priority
	Unique   bool // a push finds a live job with its unique key, and does what OnTaken says
	Atomic   bool // Push stores all messages of a call or none
}

// A Session describes a worker that opens a Consumer.
type Session struct {
	Worker string        // its name, different from every other worker's; for reservations and dead letters
	Slots  int           // how many jobs it runs at once; besides, finished ones may not be completed yet
	Queues []Weight      // the queues that it takes jobs from
	Lease  time.Duration // how long Receive and Extend reserve a delivery
	Limit  time.Duration // the time limit of a job without a Timeout of its own; 0: none
}

// A Weight is a queue and its share of the worker's looks for jobs. If all weights are 0, the
// queues are in strict order. Package queue draws the order of each look, see Want.
type Weight struct {
	Queue  string
	Weight int
}

// A Want says how many messages a call of Receive may take, and from where.
type Want struct {
	Max    int      // at least 1
	Queues []string // some of the Session's, in this order: from the second only if the first has too few, …
}

// A Consumer takes deliveries for one run of a worker. Package queue calls Receive and the methods
// of Sweeper and Tidier from one goroutine, Extend and Complete concurrently with them from others,
// and Close last.
type Consumer interface {
	// Receive reserves due messages for Session.Lease and counts an attempt of each. It returns
	// them in order: by queue as in want, then by priority if the store can do that, then the one
	// that has been due longest first. It does not wait: if no message is due, it returns none and
	// no error.
	Receive(ctx context.Context, want Want) ([]Delivery, error)

	// Extend makes the leases of deliveries end Session.Lease from now. It returns nil if all are
	// extended, else a slice with nil or an error for each receipt. ErrLost says that the delivery
	// is no longer reserved.
	Extend(ctx context.Context, receipts []Receipt) []error

	// Complete stores what becomes of at most MaxComplete deliveries and acknowledges them. It
	// returns nil if all are stored, else a slice with nil or an error for each completion. ErrLost
	// says that nothing was stored because the delivery is no longer reserved. After any other
	// error the completion may be stored or not, and package queue tries it again.
	Complete(ctx context.Context, completions []Completion) []error

	// Close gives back messages that the consumer took and Receive did not return. Deliveries that
	// were not completed stay reserved until their leases end.
	Close(ctx context.Context) error
}

// MaxComplete is the most completions in one call of Complete.
const MaxComplete = 100

// MaxPriority is the highest priority of a message; 0 is the lowest.
const MaxPriority = 3

// MaxKey is the most bytes of Message.Queue and Message.UniqueKey. Every store takes that many.
const MaxKey = 191
