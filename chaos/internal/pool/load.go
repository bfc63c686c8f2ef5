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

// A stressor is what the task chaos takes.
type stressor struct {
	Markers string        // file of markers; empty: leave none
	ID      int64         // which marker is ours
	Do      string        // see run
	For     time.Duration // how long
	Size    int           // bytes to return
}

// A stressed worker has the markers open from its first task on.
type stressed struct {
	once    sync.Once
	markers *markers
	err     error
}

// run leaves the task's marker and does what it is told.
func (w *stressed) run(ctx context.Context, s stressor) ([]byte, error) {
	if s.Markers != "" {
		w.once.Do(func() { w.markers, w.err = openMarkers(s.Markers) })
		if w.err != nil {
			return nil, w.err
		}
		w.markers.set(s.ID)
	}
	switch s.Do {
	case "return":
	case "wait":
		select {
		case <-time.After(s.For):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	case "spin":
		for end := time.Now().Add(s.For); time.Now().Before(end); {
		}
	case "fail":
		return nil, errors.New("told to fail")
	case "panic":
		panic("told to panic")
	case "exit":
		os.Exit(3)
	default:
		return nil, fmt.Errorf("cannot %q", s.Do)
	}
	return make([]byte, s.Size), nil
}

// A claim is what an answer says of its task.
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

// A verdict is how a call was answered.
type verdict struct {
	status task.Status // 0: success
	claim  claim
	late   bool // its time was up; a -7 that is not late was lost with its worker
}

func (v verdict) lost() bool { return v.status == task.ErrSockTimeout && !v.late }

// An answer is what one call came to.
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
			cli.Pause(ctx, time.Millisecond) // no worker is there just now
		}
	}
	return c.answers
}

// call makes one call of a random kind, with a deadline of its own so that the
// end of the storm does not cut it.
func (c *caller) call(id int64) verdict {
	s := stressor{Markers: c.markers.path, ID: id, Do: "return"}
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
		s.Size = 3 << 20 // more than a response may have
	}
	options = append(options, task.WithTimeout(timeout))
	if async {
		_, err := c.task.Async(context.Background(), c.pool, s, options...)
		return judge(err, accepted)
	}
	_, err := c.task.Sync(context.Background(), c.pool, s, options...)
	return judge(err, ran)
}

func judge(err error, success claim) verdict {
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
