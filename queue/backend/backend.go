package backend

import (
	"context"
	"time"
)

// A Backend is a store of jobs. It is safe for concurrent use. Package queue does not close it: the
// program that opened it does.
type Backend interface {
	// Name returns a word for the kind of store, such as "postgres", for logs and errors.
	Name() string

	// Can returns what the store can do. It never changes.
	Can() Capabilities

	// Push stores messages and returns a result for each, in their order. A message with a
	// UniqueKey is the only one of its call. Errors reach the program as they are, so they must say
	// which job was refused.
	Push(ctx context.Context, messages []Message) []Pushed

	// Open starts to consume. If it fails, the worker calls it again after a while, unless the
	// error wraps ErrSetup or ErrUnsupported.
	Open(ctx context.Context, s Session) (Consumer, error)
}

// Capabilities say what a store can do with the options of a push. Package queue refuses a push
// that needs more, with ErrUnsupported.
type Capabilities struct {
	Delay    bool // a message becomes due later
	Priority bool // due messages of a queue come by priority
	Unique   bool // a unique key is refused while a live job has it
	Atomic   bool // a Push stores all its messages or none
}

// A Session describes a worker that opens a Consumer.
type Session struct {
	Worker string        // its name, unique among all workers: for reservations and dead letters
	Slots  int           // how many jobs it runs at once
	Queues []Weight      // the queues that it takes jobs from
	Lease  time.Duration // how long a delivery stays reserved if the worker dies
	Limit  time.Duration // of the run of a job without a Timeout of its own; 0: none
}

// A Weight is a queue and its share of a worker's looks. Weights of 0 mean that the order of the
// queues is strict.
type Weight struct {
	Queue  string
	Weight int
}

// A Want says what a call of Receive may take.
type Want struct {
	Max    int      // at least 1
	Queues []string // some of the Session's, the one to empty first in front
}

// A Consumer takes deliveries for one run of a worker. Package queue calls Receive and the methods
// of Sweeper and Tidier from one goroutine, and the other methods concurrently.
type Consumer interface {
	// Receive reserves due messages and returns them in their order: by queue as in want, then by
	// priority if the store can, then the oldest first. It counts an attempt of each. It does not
	// wait: if no message is due, it returns none and no error.
	Receive(ctx context.Context, want Want) ([]Delivery, error)

	// Extend renews the leases of deliveries, from now. It returns nil if all are renewed, else an
	// error, which may be nil, for each receipt. ErrLost says that the delivery is no longer
	// reserved.
	Extend(ctx context.Context, receipts []Receipt) []error

	// Complete stores what becomes of at most MaxComplete deliveries and acknowledges them. It
	// returns nil if all are stored, else an error, which may be nil, for each completion. ErrLost
	// says that nothing was stored, since the delivery is no longer reserved. After any other error
	// the completion may be stored or not, and package queue tries it again.
	Complete(ctx context.Context, completions []Completion) []error

	// Close gives back what the consumer took and Receive did not return. Open deliveries stay
	// reserved until their leases end.
	Close(ctx context.Context) error
}

// MaxComplete is how many completions one call of Complete has at most.
const MaxComplete = 100

// MaxPriority is the highest priority of a message; 0 is the lowest.
const MaxPriority = 3

// MaxKey is the length in bytes that the name of a queue or a unique key may have in every store.
const MaxKey = 191
