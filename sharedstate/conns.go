package sharedstate

import "runtime"

// ConnOpen takes a place for a connection; -1 when all 128 are taken. The worker's own.
func (r Row) ConnOpen() (place int) {
	place = claim(r.maps().conns[:], maxConns)
	if place >= 0 {
		r.t.conns[r.n][place].Store(0)
	}
	return place
}

// ConnRead notes, before its run begins, the last id on the connection whose task may run:
// nothing with a greater id ran. Place -1 is none. The worker's own.
func (r Row) ConnRead(place int, id uint64) {
	if place >= 0 {
		r.t.conns[r.n][place].Store(id)
	}
}

// ConnClose gives the place back. The id stays readable until another
// connection takes the place: it is still true. The worker's own.
func (r Row) ConnClose(place int) {
	if place >= 0 {
		release(r.maps().conns[:], place)
	}
}

// LastRead finds the greatest id noted in the row, of a process dead or alive,
// with the same high 32 bits as id: those name the connection.
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
