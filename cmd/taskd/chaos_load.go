package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/taskd-go/task"
)

// A stressor is what the task chaos takes.
type stressor struct {
	Markers string        // file of markers; empty: leave none
	ID      int64         // which marker is ours
	Do      string        // see stress
	For     time.Duration // how long
	Size    int           // bytes to return
}

// stress leaves its marker and does what it is told.
func stress(ctx context.Context, s stressor) ([]byte, error) {
	if s.Markers != "" {
		if err := mark(s.Markers, s.ID); err != nil {
			return nil, err
		}
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

// markers is a file with a byte per call, which its task sets when it begins. What
// was written stays when the writer is killed.
type markers struct{ f *os.File }

func newMarkers(path string) (*markers, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return &markers{f}, err
}

func (m *markers) close() { m.f.Close() }

func mark(path string, id int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte{1}, id)
	return err
}

// ran tells whether a task has left its marker.
func (m *markers) ran(id int64) bool {
	var b [1]byte
	n, _ := m.f.ReadAt(b[:], id)
	return n == 1 && b[0] == 1
}

// A claim is what an answer says of its task.
type claim uint8

const (
	claimsRan claim = iota
	claimsNotRun
	claimsAccepted
	maybeLost // may have run: its worker was lost
	maybeLate // may have run: the time was up
)

// An answer is what one call came to.
type answer struct {
	id     int64
	claim  claim
	status task.Status // 0: success
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
	for ctx.Err() == nil {
		id := c.next
		c.next += c.step
		claim, status := c.call(id)
		c.answers = append(c.answers, answer{id, claim, status})
		if status == task.ErrProcessBusy {
			pause(ctx, time.Millisecond) // no worker is there just now
		}
	}
	return c.answers
}

// call makes one call of a random kind, with a deadline of its own so that the
// end of the storm does not cut it.
func (c *caller) call(id int64) (claim, task.Status) {
	s := stressor{Markers: c.markers.f.Name(), ID: id, Do: "return"}
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
		return judge(err, claimsAccepted)
	}
	_, err := c.task.Sync(context.Background(), c.pool, s, options...)
	return judge(err, claimsRan)
}

func judge(err error, success claim) (claim, task.Status) {
	var failed *task.Error
	if !errors.As(err, &failed) {
		return success, 0
	}
	switch {
	case failed.Delivery == task.NotRun:
		return claimsNotRun, failed.Status
	case failed.Delivery == task.Ran:
		return claimsRan, failed.Status
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return maybeLate, failed.Status
	default:
		return maybeLost, failed.Status
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A tally collects the answers of all callers.
type tally struct {
	mu      sync.Mutex
	answers []answer
}

func newTally() *tally { return &tally{} }

func (t *tally) add(answers []answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers = append(t.answers, answers...)
}

// claimText says a claim as the report does.
var claimText = [...]string{
	claimsRan: "ran", claimsNotRun: "not run", claimsAccepted: "accepted",
	maybeLost: "may have run, worker lost", maybeLate: "may have run, time up",
}

// report prints the answers by status and claim, and holds each claim against its
// marker. The pool has ended by now, so nothing will run later.
func (t *tally) report(c *chaos) {
	type kind struct {
		status task.Status
		claim  claim
	}
	type sum struct{ all, ran int }
	sums := make(map[kind]*sum)
	for _, a := range t.answers {
		k := kind{a.status, a.claim}
		if sums[k] == nil {
			sums[k] = new(sum)
		}
		sums[k].all++
		if c.markers.ran(a.id) {
			sums[k].ran++
		}
	}
	kinds := slices.SortedFunc(maps.Keys(sums), func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.status, a.status), cmp.Compare(a.claim, b.claim))
	})
	fmt.Fprintf(c.out, "calls: %d\n", len(t.answers))
	for _, k := range kinds {
		s := sums[k]
		fmt.Fprintf(c.out, "  status %2d, %-26s %9d, of which %d had run\n", k.status, claimText[k.claim], s.all, s.ran)
		switch {
		case k.claim == claimsNotRun && s.ran > 0:
			c.offf("%d calls with status %d were answered \"not run\", and had run", s.ran, k.status)
		case k.claim == claimsRan && s.ran < s.all:
			c.offf("%d calls with status %d were answered as if they had run, and had not", s.all-s.ran, k.status)
		case k.claim == maybeLost:
			fmt.Fprintf(c.out, "  %.1f %% of the lost calls that may have run never ran (aim: under 2 %%)\n", 100*float64(s.all-s.ran)/float64(s.all))
		}
	}
}
