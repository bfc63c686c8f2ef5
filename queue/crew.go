package queue

// A crew is goroutines that wait for the next function when one has returned: they have grown their stacks already.
type crew struct {
	next chan func()
	over <-chan struct{} // closed when those that wait shall end
}

// run calls f in a goroutine.
func (c crew) run(f func()) {
	select {
	case c.next <- f:
	default:
		go c.member(f)
	}
}

func (c crew) member(f func()) {
	for {
		f()
		select {
		case f = <-c.next:
		case <-c.over:
			return
		}
	}
}
