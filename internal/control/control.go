// Package control is the private channel between the parent of a pool and one of its workers: a
// socket pair that carries JSON lines. The end of the stream tells each side that the other has
// ended.
package control

import "time"

// Version is the version of the handover. A worker of another version refuses to start.
const Version = 1

// Descriptors of a worker after 0, 1 and 2.
const (
	FDControl = 3 + iota
	FDTable
	FDListener
	NumFDs = iota
)

// ExitUnclean is the exit status of a worker that still had running tasks when its drain timed out.
const ExitUnclean = 3

// EnvMarker is the environment variable that makes a re-executed program a worker. Its value is
// "VERSION SERVERNAME". It is removed before main runs.
const EnvMarker = "TASKD_WORKER"

// A Handover is the first message of the parent.
type Handover struct {
	Version    int
	Build      string // build id of the parent's executable
	ServerName string
	TempDir    string
	Title      string // process title
	Arg0       string // os.Args[0] of the program
	Index      int
	Generation uint64
	Row        int
	Tasks      []string // names in the registry of the parent
	Allowed    []string // names that the workers may run; empty means all
	Settings
}

// Settings are the settings of the parent that apply to the worker, too.
type Settings struct {
	WorkerNum, MaxRunningNum, MaxPackageSize int
	SoftTimeLimit, TimeLimit                 time.Duration
	DrainTimeout, FrameTimeout, DrainGrace   time.Duration
	MaxTasksPerWorker                        int
	MaxWorkerAge                             time.Duration
	MaxWorkerMemory                          int64
}

// A Kind is the kind of a message. The parent sends Handover first, then Accept, Drain and Cut. A
// worker sends the others.
type Kind string

const (
	KindHandover Kind = "handover"
	KindAccept   Kind = "accept" // listen again and accept
	KindDrain    Kind = "drain"  // if End is set, the pool ends, and connections in the backlog get -2
	KindCut      Kind = "cut"    // the contexts of all tasks end now

	KindReady     Kind = "ready"      // OnWorkerStart has returned; Names: the registry of the worker
	KindBootError Kind = "boot_error" // Text
	KindAccepting Kind = "accepting"  // answers Accept
	KindDraining  Kind = "draining"   // the worker began to drain because of a signal; Reason: "signal"
	KindStopped   Kind = "stopped"    // the worker no longer accepts connections
	KindSoftLimit Kind = "soft_limit" // of a task; Text: the goroutine dump
	KindHardLimit Kind = "hard_limit" // of a task: the worker takes no more calls and must be replaced
	KindRecycle   Kind = "recycle"    // the worker asks for a successor; Reason: a tasktype.Reason
	KindSuspect   Kind = "suspect"    // the worker itself failed several times in a row
	KindDrift     Kind = "drift"      // Text: how records and counters differ
)

// A Message is one line of the channel.
type Message struct {
	Kind     Kind
	Handover *Handover     `json:",omitempty"`
	End      bool          `json:",omitempty"`
	Within   time.Duration `json:",omitempty"` // of Drain: how long tasks may continue; negative: without limit
	Reason   string        `json:",omitempty"`
	Text     string        `json:",omitempty"`
	Names    []string      `json:",omitempty"`
	TaskID   uint64        `json:",omitempty"`
	Task     string        `json:",omitempty"`
	Limit    time.Duration `json:",omitempty"`
	Started  int64         `json:",omitempty"` // of the task, CLOCK_MONOTONIC, ns
}
