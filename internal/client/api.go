package client

import (
	"context"
	"time"

	"github.com/taskd-go/task/protocol"
	"github.com/taskd-go/task/sharedstate"
)

type Config struct {
	Table          *sharedstate.Table
	SocketPath     func(index int) string
	MaxPackageSize int
	// Describe says how a worker ended, for messages ("killed by signal 9 (SIGKILL)").
	Describe func(sharedstate.End) string
}

// A Client has the connections to all workers of one pool. Methods are safe for concurrent use.
type Client struct{}

func New(cfg Config) *Client { panic("stub") }

// A Call is one package to deliver.
type Call struct {
	Type       protocol.Type // Async or Sync
	Task       string
	Payload    func(dst []byte) ([]byte, error) // appends the arguments as one msgpack value; nil: nil
	Meta       map[string]string
	Soft, Hard time.Duration
	Deadline   int64         // absolute, sys.Now's clock; 0: none
	Wait       time.Duration // > 0: wait that long for a slot
	Cancel     bool          // the task ends with its caller
}

// A Reply is a call's success. Data is raw msgpack of its own memory.
type Reply struct {
	Data   []byte
	TaskID uint64
	Index  int
}

// Delivery is what is known of a failed call.
type Delivery int

const (
	MayHaveRun Delivery = iota
	NotRun
	Ran
)

// A Failure is a failed call.
type Failure struct {
	Status   protocol.Status
	Delivery Delivery
	TaskID   uint64
	Index    int // -1: none chosen
	PID      int
	Message  string
	Err      error
}

func (f *Failure) Error() string { panic("stub") }

// Do delivers once and waits for the result (Sync) or the acceptance (Async). ctx counts beside the deadline: its end ends the call.
func (c *Client) Do(ctx context.Context, call *Call) (Reply, *Failure) { panic("stub") }

// Many delivers each call once, spread over the workers by free slots, many packages per write; replies[i] or failures[i] belong to calls[i].
func (c *Client) Many(ctx context.Context, calls []Call) ([]Reply, []*Failure) { panic("stub") }

// Close ends the connections. Calls in flight end with their answer until ctx is done, then as lost.
func (c *Client) Close(ctx context.Context) error { panic("stub") }

// ErrClosed is the cause of a call's failure after the pool has closed.
var ErrClosed error
