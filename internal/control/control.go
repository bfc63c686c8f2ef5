// Package control is the private channel between a pool's parent and one of its workers: a socket
// pair that carries JSON lines and whose end is each side's proof that the other is gone (the
// lifeline).
package control

import "time"

// Version of the handover; a worker of another one refuses to start.
const Version = 1

// Descriptors of a worker: 0, 1, 2, then these.
const (
	FDControl = 3 + iota
	FDTable
	FDListener
	NumFDs = iota
)

// ExitUnclean is the exit status of a worker that drained and still had tasks running at the limit.
const ExitUnclean = 3

// EnvMarker is the one environment variable that makes a re-executed program a worker. Its value is
// "VERSION SERVERNAME"; it is unset before main.
const EnvMarker = "TASKD_WORKER"

// A Handover is the parent's first message.
type Handover struct {
	Version    int
	Build      string // build id of the parent's executable
	ServerName string
	TempDir    string
	Title      string // of the process
	Arg0       string // the program's own os.Args[0]
	Index      int
	Generation uint64
	Row        int
	Tasks      []string // names in the pool's registry
	Allowed    []string // names that the workers may run; empty: all
	Settings
}

// Settings are the parent's numbers, which count in the worker too.
type Settings struct {
	WorkerNum, MaxRunningNum, MaxPackageSize int
	SoftTimeLimit, TimeLimit                 time.Duration
	DrainTimeout, FrameTimeout, DrainGrace   time.Duration
	MaxTasksPerWorker                        int
	MaxWorkerAge                             time.Duration
	MaxWorkerMemory                          int64
}

// A Kind names a message. The parent sends Handover first, then Accept, Drain, Cut; a worker sends
// the others.
type Kind string

const (
	KindHandover Kind = "handover"
	KindAccept   Kind = "accept" // listen again and accept
	KindDrain    Kind = "drain"  // End: it is the end of the pool, what sits in the backlog gets -2
	KindCut      Kind = "cut"    // the tasks' contexts end now

	KindReady     Kind = "ready"      // OnWorkerStart is done; Names: its registry
	KindBootError Kind = "boot_error" // Text
	KindAccepting Kind = "accepting"  // the answer to Accept
	KindDraining  Kind = "draining"   // it began by itself; Reason "signal" or "parent"
	KindStopped   Kind = "stopped"    // it accepts no more connections
	KindSoftLimit Kind = "soft_limit" // a task's; Text: the goroutine dump
	KindHardLimit Kind = "hard_limit" // a task's: stop new work, replace, then kill
	KindRecycle   Kind = "recycle"    // wants a successor; Reason: a tasktype.Reason
	KindSuspect   Kind = "suspect"    // fast failures in a row of the worker itself
	KindDrift     Kind = "drift"      // Text: the audit found records and counters apart
)

// A Message is one line of the channel.
type Message struct {
	Kind     Kind
	Handover *Handover     `json:",omitempty"`
	End      bool          `json:",omitempty"`
	Within   time.Duration `json:",omitempty"` // of a Drain: how long tasks may go on; negative: for ever
	Reason   string        `json:",omitempty"`
	Text     string        `json:",omitempty"`
	Names    []string      `json:",omitempty"`
	TaskID   uint64        `json:",omitempty"`
	Task     string        `json:",omitempty"`
	Limit    time.Duration `json:",omitempty"`
	Started  int64         `json:",omitempty"` // of the task, CLOCK_MONOTONIC, ns
}
