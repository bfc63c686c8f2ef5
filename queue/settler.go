package queue

import (
	"context"
	"sync"
	"time"
)

const (
	settleMost   = 100                  // verdicts in one transaction
	settleAfter  = 5 * time.Millisecond // the longest that a verdict waits for others
	settlePause  = 10 * time.Millisecond
	settleAtOnce = 2 // transactions, when there is more than one can hold
)

// A settler stores the ends of a session's jobs, many in one transaction.
type settler struct {
	s    *session
	ctx  context.Context // of all that it writes
	end  context.CancelFunc
	in   chan settling
	done chan struct{}
	stop chan struct{} // closed when nobody may add any more

	free   chan []settling // batches that are not in use
	beside sync.WaitGroup  // those that are stored while the next one is collected
}

type settling struct {
	d    *delivery
	v    verdict
	last bool // nothing runs that could be waited for
}

func newSettler(s *session) *settler {
	t := &settler{s: s, in: make(chan settling, settleMost), done: make(chan struct{}), stop: make(chan struct{}),
		free: make(chan []settling, settleAtOnce)}
	t.ctx, t.end = context.WithCancel(s.base)
	for range settleAtOnce {
		t.free <- make([]settling, 0, settleMost)
	}
	go t.run()
	return t
}

// add hands a verdict over; after close it is dropped, and the lease lapses.
func (t *settler) add(d *delivery, v verdict, last bool) {
	select {
	case t.in <- settling{d, v, last}:
	case <-t.stop:
	}
}

// close stores what was added before it, which all together may take as long as one query. It is called once.
func (t *settler) close() {
	close(t.stop)
	defer t.end()
	defer time.AfterFunc(t.s.query, t.end).Stop()
	<-t.done
}

func (t *settler) run() {
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
					t.store([]settling{first})
				default:
					return
				}
			}
		}
	}
}

// hand stores a batch; a full one while the next is collected, since one transaction after the other would hold the
// handlers up.
func (t *settler) hand(batch []settling) {
	store := func() {
		t.store(batch)
		t.free <- batch[:0]
	}
	if len(batch) < settleMost {
		store()
		return
	}
	t.beside.Go(store)
}

// collect waits a moment for what ends at about the same time.
func (t *settler) collect(batch []settling, first settling) []settling {
	batch = append(batch, first)
	timer := time.NewTimer(settleAfter)
	defer timer.Stop()
	for len(batch) < settleMost {
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

// store puts a batch into the database. A batch that fails is stored one by one, so that one bad row does not hold up
// the others.
func (t *settler) store(batch []settling) {
	live := batch[:0]
	for _, b := range batch {
		if t.s.owns(b.d) {
			live = append(live, b)
		} else {
			t.s.stored(b.d, b.v, false, nil)
		}
	}
	if len(live) == 0 {
		return
	}
	held, err := t.try(live)
	if err == nil {
		for _, b := range live {
			t.s.stored(b.d, b.v, held[b.d.row.id], nil)
		}
		return
	}
	for _, b := range live {
		t.storeOne(b, err)
	}
}

// storeOne tries for as long as a lease lasts while the database takes other writes, and then leaves the row to the
// sweep. An outage does not count. When a try before failed, no row found means that either that try or the lease's end
// was the reason.
func (t *settler) storeOne(b settling, err error) {
	end := time.Now().Add(t.s.lease)
	for pause := settlePause; ; pause = min(2*pause, time.Second) {
		held, again := t.try([]settling{b})
		switch {
		case again == nil && held[b.d.row.id]:
			t.s.stored(b.d, b.v, true, nil)
			return
		case again == nil:
			t.s.stored(b.d, b.v, false, err)
			return
		case t.s.called.Err() != nil: // the session waits no longer
			t.s.stored(b.d, b.v, false, again)
			return
		case !t.renew(b):
			end = time.Now().Add(t.s.lease)
		case !time.Now().Before(end):
			t.s.stored(b.d, b.v, false, again)
			return
		}
		err = again
		select {
		case <-time.After(pause):
		case <-t.s.called.Done():
		}
	}
}

// renew extends the lease of a row whose end was not stored. Not ok: the database takes no writes at all.
func (t *settler) renew(b settling) (ok bool) {
	ctx, cancel := context.WithTimeout(t.s.called, t.s.query)
	defer cancel()
	_, err := t.s.q.renew(ctx, []int64{b.d.row.id}, []string{b.d.row.token.String}, t.s.lease)
	return err == nil
}

func (t *settler) try(batch []settling) (held map[int64]bool, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.s.query)
	defer cancel()
	verdicts := make([]verdict, len(batch))
	for i, b := range batch {
		verdicts[i] = b.v
	}
	return t.s.q.settle(ctx, verdicts, t.s.name)
}
