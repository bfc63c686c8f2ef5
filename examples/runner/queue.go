package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/taskd-go/task/job"
)

// A queue is a transport in memory. Each message has a time before which it is not taken.
type queue struct {
	parts *job.Parts

	mu       sync.Mutex
	messages []message
}

type message struct {
	body  []byte
	ready time.Time
}

func (q *queue) publish(ctx context.Context, e job.Envelope) error { return q.requeue(ctx, e, 0) }

func (q *queue) requeue(_ context.Context, e job.Envelope, delay time.Duration) error {
	body, err := e.Encode()
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, message{body, time.Now().Add(delay)})
	return nil
}

// take removes and returns the message that is ready first.
func (q *queue) take() (message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.messages) == 0 {
		return message{}, false
	}
	first := 0
	for i, m := range q.messages {
		if m.ready.Before(q.messages[first].ready) {
			first = i
		}
	}
	m := q.messages[first]
	q.messages = slices.Delete(q.messages, first, first+1)
	return m, true
}

// workUntilEmpty runs jobs until none is left, delayed ones included. A real transport acknowledges
// a message after RunRegistered has returned without an error, and not before.
func (q *queue) workUntilEmpty(ctx context.Context) error {
	bury := job.DeadLetterTo(q.parts.DeadLetters, job.DefaultQueue)
	for {
		m, ok := q.take()
		if !ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(m.ready)):
		}
		e, err := job.Decode(m.body)
		if err != nil {
			if _, err := q.parts.DeadLetters.Put(ctx, job.RawDeadLetter(job.DefaultQueue, m.body, err)); err != nil {
				return err
			}
			continue
		}
		if _, err := q.parts.Runner.RunRegistered(ctx, q.parts.Registry, e, q.requeue, bury); err != nil {
			return err
		}
	}
}
