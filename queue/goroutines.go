package queue

// A goroutinePool reuses goroutines. A goroutine whose function has returned waits for the next
// one, so that its stack need not grow again.
type goroutinePool struct {
	next chan func()
	over <-chan struct{} // closed when goroutines that wait must end
}

// run calls f in a goroutine.
func (p goroutinePool) run(f func()) {
	select {
	case p.next <- f:
	default:
		go p.loop(f)
	}
}

func (p goroutinePool) loop(f func()) {
	for {
		f()
		select {
		case f = <-p.next:
		case <-p.over:
			return
		}
	}
}
