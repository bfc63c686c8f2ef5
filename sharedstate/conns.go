package sharedstate

import "runtime"

// ConnOpen takes a place for a connection and returns it, -1 if all 128 are taken.
func (r WorkerRow) ConnOpen() (place int) {
	place = claim(r.maps().conns[:], maxConns)
	if place >= 0 {
		r.t.conns[r.n][place].Store(0)
	}
	return place
}

// ConnRead stores the last id on the connection whose task may run; the worker calls it before the
// run begins. No task of a greater id ran. For place -1 it does nothing.
func (r WorkerRow) ConnRead(place int, id uint64) {
	if place >= 0 {
		r.t.conns[r.n][place].Store(id)
	}
}

// ConnClose frees the place. Its id stays readable until another connection takes the place. For
// place -1 it does nothing.
func (r WorkerRow) ConnClose(place int) {
	if place >= 0 {
		release(r.maps().conns[:], place)
	}
}

// LastRead returns the greatest id that ConnRead stored for the connection of id. The high 32 bits
// of an id identify its connection. The row's process may have ended.
func (r Row) LastRead(id uint64) (last uint64, ok bool) {
	defer runtime.KeepAlive(r.t)
	slots := &r.t.conns[r.n]
	for place := range slots {
		if noted := slots[place].Load(); noted != 0 && noted>>32 == id>>32 {
			last, ok = max(last, noted), true
		}
	}
	return last, ok
}
