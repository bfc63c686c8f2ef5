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

// errLater is what a fault returns that records itself when it is done.
var errLater = errors.New("not done yet")

// A fault is one kind of harm, done so often among weights.
type fault struct {
	name   string
	weight int
	do     func(context.Context) error
}

// faults does harm to the workers, and counts it.
type faults struct {
	*chaos
	random *rand.Rand
	kinds  []fault
	later  sync.WaitGroup // what a fault started and has not finished

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
		{"told to exit", 5, f.exit},
		{"socket file removed", 5, f.unlink},
		{"reloaded", 5, f.reload},
	}
	return f
}

// run does harm until ctx ends, and returns when everything that it stopped goes on.
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

// worker picks one that accepts.
func (f *faults) worker() (task.WorkerStatus, error) {
	rows := slices.DeleteFunc(f.pool.Status(), func(r task.WorkerStatus) bool { return r.PID == 0 || !r.Accepting })
	if len(rows) == 0 {
		return task.WorkerStatus{}, errors.New("no worker accepts just now")
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

// stop stops a worker for a while.
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

// exit has a task end its process, which may be faster than the answer that it is accepted.
func (f *faults) exit(ctx context.Context) error {
	_, err := f.task.Async(ctx, f.pool, stressor{Do: "exit"})
	if judge(err, accepted).lost() {
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

// reload replaces all workers, beside the other faults.
func (f *faults) reload(ctx context.Context) error {
	f.later.Go(func() {
		if err := f.pool.Reload(ctx); ctx.Err() == nil {
			f.record("reloaded", err)
		}
	})
	return errLater
}

// garbage sends a worker what no client would, and does not read the answer.
func (f *faults) garbage(context.Context) error {
	w, err := f.worker()
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", f.socket(w), time.Second)
	if err != nil {
		return err
	}
	bytes, hold := f.rubbish()
	f.later.Go(func() {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = conn.Write(bytes) // the worker may have closed it already
		cli.Pause(context.Background(), hold)
	})
	return nil
}

// rubbish makes one of several kinds, and how long the connection is held afterwards.
func (f *faults) rubbish() (bytes []byte, hold time.Duration) {
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
	case 6: // a package of a task that is not there: [1, 2, 1, 0, "x", nil]
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
			fmt.Fprintf(c.out, "   and %d that failed, the last: %v", n, f.failed[k.name][n-1])
		}
		fmt.Fprintln(c.out)
	}
}
