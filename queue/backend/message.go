package backend

import (
	"time"

	"github.com/taskd-go/task/job"
)

// A Message is a job on its way into a store.
type Message struct {
	Queue    string       // 1 to MaxKey bytes of UTF-8 without NUL
	Envelope job.Envelope // the job, for stores that keep parts of it beside the payload
	Payload  []byte       // the encoded Envelope, which a Delivery brings back

	Delay       time.Duration  // until the message is due, by the store's clock; never negative
	Priority    int            // 0 to MaxPriority
	Attempts    int            // those that the job has had elsewhere
	MaxAttempts int            // 0: the envelope's
	Backoff     *time.Duration // the wait after each failure; nil: the worker's policy
	Timeout     time.Duration  // of each run; 0: the worker's, negative: none

	UniqueKey string // with the job's type before it; "": none
	OnTaken   Taken
}

// A Pushed is the result of pushing one message.
type Pushed struct {
	ID  string // unique in the store; "" after an error
	Err error  // nil: stored and confirmed. A *DuplicateError: the unique key is taken
}

// Taken says what a push does whose unique key is taken by another job that is not finished.
type Taken int

// What a push does whose unique key is taken.
const (
	TakenReject   Taken = iota + 1 // it fails with a *DuplicateError
	TakenExisting                  // it stores nothing and returns the id of the job that has the key
	TakenReplace                   // it takes that job's place while no worker has it, with a new id; else as TakenReject
)

// A PushOption sets something of a push. Package queue has the options that all stores know; a
// store's package may have others, such as sqlqueue.In.
type PushOption func(*PushOptions)

// PushOptions are what the options of one push say, before package queue has checked them.
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
