package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
)

// An order is the argument of the task chaos.
type order struct {
	Markers string        // path of the markers; empty: set none
	ID      int64         // index of the task's marker
	Do      string        // one of the words in run
	For     time.Duration // how long to wait or spin
	Size    int           // bytes to return
}

// A worker runs the tasks of one worker process. It opens the markers at the first task.
type worker struct {
	once    sync.Once
	markers *markers
	err     error
}

// run sets the task's marker and carries out the order.
func (w *worker) run(ctx context.Context, o order) ([]byte, error) {
	if o.Markers != "" {
		w.once.Do(func() { w.markers, w.err = openMarkers(o.Markers) })
		if w.err != nil {
			return nil, w.err
		}
		w.markers.set(o.ID)
	}
	switch o.Do {
	case "return":
	case "wait":
		select {
		case <-time.After(o.For):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	case "spin":
		for end := time.Now().Add(o.For); time.Now().Before(end); {
		}
	case "fail":
		return nil, errors.New("failed as ordered")
	case "panic":
		panic("panic as ordered")
	case "exit":
		os.Exit(3)
	default:
		return nil, fmt.Errorf("unknown order %q", o.Do)
	}
	return make([]byte, o.Size), nil
}

// A claim is what an answer says about its task.
type claim uint8

const (
	ran claim = iota
	notRun
	mayHaveRun
	accepted
)

func (c claim) String() string {
	return [...]string{ran: "ran", notRun: "not run", mayHaveRun: "may have run", accepted: "accepted"}[c]
}

// A verdict is the answer to a call.
type verdict struct {
	status task.Status // 0: success
	claim  claim
	late   bool // the deadline passed; a -7 that is not late was lost with its worker
}

func (v verdict) lost() bool { return v.status == task.ErrSockTimeout && !v.late }

// An answer is the verdict on one call.
type answer struct {
	id int64
	verdict
}

// A caller makes one call after another.
type caller struct {
	*chaos
	random  *rand.Rand
	next    int64
	step    int64
	answers []answer
}

func newCaller(c *chaos, i int) *caller {
	return &caller{
		chaos:  c,
		random: rand.New(rand.NewPCG(c.seed, uint64(i)+1)),
		next:   int64(i),
		step:   int64(8 * c.cfg.WorkerNum),
	}
}

func (c *caller) run(ctx context.Context) []answer {
	for ; ctx.Err() == nil && c.next < maxMarkers; c.next += c.step {
		v := c.call(c.next)
		c.answers = append(c.answers, answer{c.next, v})
		if v.status == task.ErrProcessBusy {
			cli.Pause(ctx, time.Millisecond) // no worker is free
		}
	}
	return c.answers
}

// call makes one call of a random kind. Each call has its own deadline, so the end of the run
// interrupts none.
func (c *caller) call(id int64) verdict {
	s := order{Markers: c.markers.path, ID: id, Do: "return"}
	timeout := 10 * time.Second
	var options []task.CallOption
	async := false
	switch n := c.random.IntN(1000); {
	case n < 500:
		s.Size = c.random.IntN(1 << 10)
	case n < 560:
		s.Size = c.random.IntN(256 << 10)
	case n < 660:
		s.Do, s.For = "wait", time.Duration(c.random.IntN(20))*time.Millisecond
	case n < 680:
		s.Do, s.For = "spin", time.Duration(c.random.IntN(3))*time.Millisecond
	case n < 800:
		async = true
	case n < 850:
		s.Do = "fail"
	case n < 880:
		s.Do = "panic"
	case n < 930:
		s.Do, s.For = "wait", time.Duration(c.random.IntN(5))*time.Millisecond
		timeout = time.Duration(1+c.random.IntN(5)) * time.Millisecond
	case n < 960:
		s.Do, s.For = "wait", time.Duration(c.random.IntN(50))*time.Millisecond
		timeout = time.Duration(1+c.random.IntN(50)) * time.Millisecond
		options = append(options, task.WithCancel())
	case n < 998:
		options = append(options, task.WithWait(time.Second))
	default:
		s.Size = 3 << 20 // above the limit of a response
	}
	options = append(options, task.WithTimeout(timeout))
	if async {
		_, err := c.task.Async(context.Background(), c.pool, s, options...)
		return classify(err, accepted)
	}
	_, err := c.task.Sync(context.Background(), c.pool, s, options...)
	return classify(err, ran)
}

// classify returns the verdict that err, the result of a call, stands for.
func classify(err error, success claim) verdict {
	var failed *task.Error
	if !errors.As(err, &failed) {
		return verdict{claim: success}
	}
	v := verdict{status: failed.Status, claim: mayHaveRun}
	switch failed.Delivery {
	case task.NotRun:
		v.claim = notRun
	case task.Ran:
		v.claim = ran
	}
	v.late = errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	return v
}
