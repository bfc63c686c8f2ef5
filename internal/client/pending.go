package client

import "iter"

// keptPlaces is how many places are kept when no call waits.
const keptPlaces = 4096

// pending maps ids to the waiters of a shared connection. Ids grow by one from call to call, so
// nearly every waiter finds a free place in a slice. A waiter whose place is still taken by an
// older call goes into a map, which costs several times as much.
type pending struct {
	places []*waiter // by the low bits of the id; a power of two, at most half taken
	others map[uint64]*waiter
	n      int
}

// add adds w, whose id must be new.
func (p *pending) add(w *waiter) {
	if 2*p.n >= len(p.places) {
		p.grow()
	}
	p.put(w)
	p.n++
}

func (p *pending) put(w *waiter) {
	if i := p.place(w.id); p.places[i] == nil {
		p.places[i] = w
		return
	}
	if p.others == nil {
		p.others = make(map[uint64]*waiter)
	}
	p.others[w.id] = w
}

func (p *pending) place(id uint64) int { return int(id) & (len(p.places) - 1) }

func (p *pending) grow() {
	old := *p
	*p = pending{places: make([]*waiter, max(16, 2*len(old.places))), n: old.n}
	for w := range old.all() {
		p.put(w)
	}
}

// find returns the waiter with the id, or nil.
func (p *pending) find(id uint64) *waiter {
	if p.n == 0 {
		return nil
	}
	if w := p.places[p.place(id)]; w != nil && w.id == id {
		return w
	}
	return p.others[id]
}

// take removes the waiter with the id and returns it, or nil.
func (p *pending) take(id uint64) *waiter {
	w := p.find(id)
	if w == nil {
		return nil
	}
	if i := p.place(id); p.places[i] == w {
		p.places[i] = nil
	} else {
		delete(p.others, id)
	}
	if p.n--; p.n == 0 && len(p.places) > keptPlaces {
		*p = pending{}
	}
	return w
}

// all iterates over the waiters. None may be added or removed meanwhile.
func (p *pending) all() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		for _, w := range p.places {
			if w != nil && !yield(w) {
				return
			}
		}
		for _, w := range p.others {
			if !yield(w) {
				return
			}
		}
	}
}
