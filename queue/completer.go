package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/taskd-go/task/queue/backend"
)

const (
	batchMost   = backend.MaxComplete
	batchAfter  = 5 * time.Millisecond  // the longest time that a completion waits for others
	batchAtOnce = 2                     // full batches that are stored at the same time
	firstPause  = 10 * time.Millisecond // before a completion is tried again
)

// A completer stores the completions of a session's jobs, many in one call.
type completer struct {
	s    *session
	ctx  context.Context // of the calls of the store
	end  context.CancelFunc
	in   chan completing
	done chan struct{}
	stop chan struct{} // closed when no more may be added

	free   chan []completing // batches that are not in use
	beside sync.WaitGroup    // batches that are stored while the next one is collected
}

type completing struct {
	d    *delivery
	c    completion
	last bool // no other job runs, so waiting for one is useless
}

func newCompleter(s *session) *completer {
	t := &completer{s: s, in: make(chan completing, batchMost), done: make(chan struct{}), stop: make(chan struct{}),
		free: make(chan []completing, batchAtOnce)}
	t.ctx, t.end = context.WithCancel(s.base)
	for range batchAtOnce {
		t.free <- make([]completing, 0, batchMost)
	}
	go t.run()
	return t
}

// add adds a completion to a batch. After close it drops the completion; then the lease lapses.
func (t *completer) add(d *delivery, c completion, last bool) {
	select {
	case t.in <- completing{d, c, last}:
	case <-t.stop:
	}
}

// close stores what was added before, and gives up after the time of the option QueryTimeout. It is
// called once.
func (t *completer) close() {
	close(t.stop)
	defer t.end()
	defer time.AfterFunc(t.s.query, t.end).Stop()
	<-t.done
}

func (t *completer) run() {
	defer close(t.done)
	defer t.beside.Wait()
	for {
		select {
		case first := <-t.in:
			t.hand(t.collect(<-t.free, first))
		case <-t.stop:
			for {
				select {
				case first := <-t.in:
					t.store([]completing{first})
				default:
					return
				}
			}
		}
	}
}

// hand stores a batch. It returns before a full one is stored, so that the next is collected
// meanwhile and the handlers need not wait.
func (t *completer) hand(batch []completing) {
	store := func() {
		t.store(batch)
		t.free <- batch[:0]
	}
	if len(batch) < batchMost {
		store()
		return
	}
	t.beside.Go(store)
}

// collect waits a moment for other completions.
func (t *completer) collect(batch []completing, first completing) []completing {
	batch = append(batch, first)
	timer := time.NewTimer(batchAfter)
	defer timer.Stop()
	for len(batch) < batchMost {
		if batch[len(batch)-1].last {
			select {
			case next := <-t.in:
				batch = append(batch, next)
				continue
			default:
				return batch
			}
		}
		select {
		case next := <-t.in:
			batch = append(batch, next)
		case <-timer.C:
			return batch
		case <-t.stop:
			return batch
		}
	}
	return batch
}

// store stores a batch. A completion that fails is tried again alone, so that one bad job does not
// hold up the others.
func (t *completer) store(batch []completing) {
	live := batch[:0]
	for i := range batch {
		if b := &batch[i]; t.s.owns(b.d) {
			live = append(live, *b)
		} else {
			t.s.completed(b.d, &b.c, backend.ErrLost)
		}
	}
	if len(live) == 0 {
		return
	}
	errs := t.try(live)
	for i := range live {
		b := &live[i]
		switch {
		case errs == nil || errs[i] == nil:
			t.s.completed(b.d, &b.c, nil)
		case errors.Is(errs[i], backend.ErrLost):
			t.s.completed(b.d, &b.c, errs[i])
		default:
			t.storeOne(b, errs[i])
		}
	}
}

// storeOne tries again until the completion is stored. It gives up, and leaves the job to the
// sweep, when the store has refused the completion for the time of a lease and still takes other
// writes: the time of an outage does not count. ErrLost does not tell whether an earlier try was
// stored or the lease ended, so completed gets the error of that earlier try.
func (t *completer) storeOne(b *completing, err error) {
	end := time.Now().Add(t.s.lease)
	for pause := firstPause; ; pause = min(2*pause, time.Second) {
		again := first(t.try([]completing{*b}))
		switch {
		case again == nil:
			t.s.completed(b.d, &b.c, nil)
			return
		case errors.Is(again, backend.ErrLost):
			t.s.completed(b.d, &b.c, err)
			return
		case t.s.called.Err() != nil: // the session waits no longer
			t.s.completed(b.d, &b.c, again)
			return
		case !t.renew(b):
			end = time.Now().Add(t.s.lease)
		case !time.Now().Before(end):
			t.s.completed(b.d, &b.c, again)
			return
		}
		err = again
		select {
		case <-time.After(pause):
		case <-t.s.called.Done():
		}
	}
}

func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// renew extends the lease of a job whose completion was not stored. It returns false if the store
// takes no writes at all.
func (t *completer) renew(b *completing) (ok bool) {
	ctx, cancel := context.WithTimeout(t.s.called, t.s.query)
	defer cancel()
	err := first(t.s.consumer.Extend(ctx, []backend.Receipt{b.d.Receipt}))
	return err == nil || errors.Is(err, backend.ErrLost)
}

func (t *completer) try(batch []completing) []error {
	ctx, cancel := context.WithTimeout(t.ctx, t.s.query)
	defer cancel()
	completions := make([]backend.Completion, len(batch))
	for i := range batch {
		completions[i] = batch[i].c.stored()
	}
	return t.s.consumer.Complete(ctx, completions)
}
