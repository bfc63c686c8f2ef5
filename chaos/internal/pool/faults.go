package pool

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/chaos/internal/cli"
)

// faultPause is the mean time between two faults: 600 in a minute.
const faultPause = 100 * time.Millisecond

// errLater is the result of a fault that goes on in the background and records its own end.
var errLater = errors.New("not done yet")

// A fault is one kind of harm. weight is its share among the weights of all.
type fault struct {
	name   string
	weight int
	do     func(context.Context) error
}

// faults harms the workers at random, and counts what it did.
type faults struct {
	*chaos
	random *rand.Rand
	kinds  []fault
	later  sync.WaitGroup // the faults that go on in the background

	mu     sync.Mutex
	done   map[string]int
	failed map[string][]error
}

func newFaults(c *chaos) *faults {
	f := &faults{
		chaos:  c,
		random: rand.New(rand.NewPCG(c.seed, 0)),
		done:   make(map[string]int),
		failed: make(map[string][]error),
	}
	f.kinds = []fault{
		{"garbage", 35, f.garbage},
		{"stopped and continued", 25, f.stop},
		{"terminated", 15, func(context.Context) error { return f.signal(syscall.SIGTERM) }},
		{"killed", 10, func(context.Context) error { return f.signal(syscall.SIGKILL) }},
		{"exited by a task", 5, f.exit},
		{"socket file removed", 5, f.unlink},
		{"reloaded", 5, f.reload},
	}
	return f
}

// run harms workers until ctx ends. It returns when every worker that it stopped goes on.
func (f *faults) run(ctx context.Context) {
	for ctx.Err() == nil {
		kind := f.choose()
		err := kind.do(ctx)
		if !errors.Is(err, errLater) {
			f.record(kind.name, err)
		}
		cli.Pause(ctx, time.Duration(f.random.Int64N(int64(2*faultPause))))
	}
	f.later.Wait()
}

func (f *faults) choose() fault {
	total := 0
	for _, k := range f.kinds {
		total += k.weight
	}
	n := f.random.IntN(total)
	for _, k := range f.kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return f.kinds[0]
}

func (f *faults) record(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed[name] = append(f.failed[name], err)
		return
	}
	f.done[name]++
}

// worker returns a random worker that accepts.
func (f *faults) worker() (task.WorkerStatus, error) {
	rows := slices.DeleteFunc(f.pool.Status(), func(r task.WorkerStatus) bool { return r.PID == 0 || !r.Accepting })
	if len(rows) == 0 {
		return task.WorkerStatus{}, errors.New("no worker accepts")
	}
	return rows[f.random.IntN(len(rows))], nil
}

func (f *faults) signal(sig syscall.Signal) error {
	w, err := f.worker()
	if err != nil {
		return err
	}
	return cli.Signal(w.PID, sig)
}

// stop stops a worker for up to 300 ms.
func (f *faults) stop(context.Context) error {
	w, err := f.worker()
	if err != nil {
		return err
	}
	if err := cli.Signal(w.PID, syscall.SIGSTOP); err != nil {
		return err
	}
	d := time.Duration(f.random.IntN(300)) * time.Millisecond
	f.later.Go(func() {
		cli.Pause(context.Background(), d)
		f.record("stopped and continued", cli.Signal(w.PID, syscall.SIGCONT))
	})
	return errLater
}

// exit runs a task that ends its process. The process may end before it has answered that it
// accepted the task.
func (f *faults) exit(ctx context.Context) error {
	_, err := f.task.Async(ctx, f.pool, order{Do: "exit"})
	if classify(err, accepted).lost() {
		return nil
	}
	return err
}

func (f *faults) socket(w task.WorkerStatus) string {
	return filepath.Join(f.cfg.TempDir, fmt.Sprintf("%s.TaskWorker.%d.sock", f.cfg.ServerName, w.Index))
}

func (f *faults) unlink(context.Context) error {
	w, err := f.worker()
	if err != nil {
		return err
	}
	err = os.Remove(f.socket(w))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// reload replaces all workers while the other faults go on.
func (f *faults) reload(ctx context.Context) error {
	f.later.Go(func() {
		if err := f.pool.Reload(ctx); ctx.Err() == nil {
			f.record("reloaded", err)
		}
	})
	return errLater
}

// garbage sends a worker bytes that no client sends, and does not read the answer.
func (f *faults) garbage(context.Context) error {
	w, err := f.worker()
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", f.socket(w), time.Second)
	if err != nil {
		return err
	}
	bytes, hold := f.garbageBytes()
	f.later.Go(func() {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = conn.Write(bytes) // the worker may have closed the connection
		cli.Pause(context.Background(), hold)
	})
	return nil
}

// garbageBytes returns garbage of a random kind, and how long to keep the connection open after it.
func (f *faults) garbageBytes() (bytes []byte, hold time.Duration) {
	frame := func(body ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	switch f.random.IntN(8) {
	case 0: // nothing at all
		return nil, 1500 * time.Millisecond
	case 1: // an empty frame
		return frame(), 0
	case 2: // a frame over every limit
		return []byte{0xff, 0xff, 0xff, 0xff}, 10 * time.Millisecond
	case 3: // an array of 64 Mi elements in five bytes
		return frame(0xdd, 0x04, 0x00, 0x00, 0x00), 10 * time.Millisecond
	case 4: // arrays in arrays
		body := make([]byte, 1_900_000)
		for i := range body {
			body[i] = 0x91
		}
		return frame(body...), 10 * time.Millisecond
	case 5: // a frame that does not end
		return []byte{0, 0, 1, 0, 0x96, 1}, 1500 * time.Millisecond
	case 6: // a package for an unknown task: [1, 2, 1, 0, "x", nil]
		return frame(0x96, 1, 2, 1, 0, 0xa1, 'x', 0xc0), 10 * time.Millisecond
	default: // noise
		body := make([]byte, 1+f.random.IntN(1000))
		for i := range body {
			body[i] = byte(f.random.Uint32())
		}
		return frame(body...), 10 * time.Millisecond
	}
}

func (f *faults) report(c *chaos) {
	total := 0
	for _, k := range f.kinds {
		total += f.done[k.name]
	}
	fmt.Fprintf(c.out, "faults: %d\n", total)
	for _, k := range f.kinds {
		fmt.Fprintf(c.out, "  %-24s %4d", k.name, f.done[k.name])
		if n := len(f.failed[k.name]); n > 0 {
			fmt.Fprintf(c.out, "   and %d that failed, the last with: %v", n, f.failed[k.name][n-1])
		}
		fmt.Fprintln(c.out)
	}
}
