package backend

import (
	"time"

	"github.com/taskd-go/task/job"
)

// A Message is a job that is pushed into a store.
type Message struct {
	Queue    string       // 1 to MaxKey bytes of UTF-8; see queue.On
	Envelope job.Envelope // the job, for stores that keep parts of it beside the payload
	Payload  []byte       // the encoded Envelope; a Delivery has the same bytes

	Delay       time.Duration  // until the message is due, by the store's clock; never negative
	Priority    int            // 0 to MaxPriority
	Attempts    int            // that the job has had already, usually 0
	MaxAttempts int            // 0: the envelope's
	Backoff     *time.Duration // the wait after each failure; nil: the worker's policy
	Timeout     time.Duration  // of each run; 0: the worker's, negative: none

	UniqueKey string // the job's type, a colon and the key of the option Unique; "": none
	OnTaken   Taken  // what Push does if a live job has UniqueKey
}

// A Pushed is the result of pushing one message.
type Pushed struct {
	ID  string // unique in the store; "" after an error
	Err error  // nil: stored and confirmed; a *DuplicateError: a live job has the unique key
}

// Taken says what a push does if a live job of the same type has its unique key.
type Taken int

// What a push does if a live job has its unique key.
const (
	TakenReject   Taken = iota + 1 // it fails with a *DuplicateError
	TakenExisting                  // it stores nothing and returns the id of that job
	TakenReplace                   // it removes that job and stores its own; if a worker has that job: as TakenReject
)

// A PushOption changes a push. Package queue has the options of all stores; the package of a store
// may have others, such as sqlqueue.In.
type PushOption func(*PushOptions)

// PushOptions are the options of one push. Package queue checks them and makes a Message of them.
type PushOptions struct {
	Queue    string
	Delay    time.Duration
	Priority int
	Tries    *int           // nil: the envelope's number
	Backoff  *time.Duration // nil: the worker's policy
	Timeout  time.Duration  // 0: the worker's, negative: none
	Key      string         // the unique key without the job's type
	OnTaken  Taken          // 0: no unique key
	Tx       any            // the caller's transaction, for a TxPusher
}
