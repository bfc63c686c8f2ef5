package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue/backend"
)

// Push stores a job and returns its id in the store. A queue of NewSync runs the job instead.
func (q *Queue) Push(ctx context.Context, j Job, opts ...PushOption) (id string, err error) {
	e, opts, err := q.fromJob(j, opts)
	if err != nil {
		return "", err
	}
	return q.PushEnvelope(ctx, e, opts...)
}

// PushEnvelope is Push for an envelope of any type. An Attempt above 1 means that the job has had
// attempts before, which count.
func (q *Queue) PushEnvelope(ctx context.Context, e job.Envelope, opts ...PushOption) (id string, err error) {
	o := q.pushOptions(opts)
	m, err := q.message(e, o)
	if err != nil {
		return "", err
	}
	pushed, err := q.store(ctx, o.Tx, []backend.Message{m})
	if err != nil {
		return "", err
	}
	id, err = pushed[0].ID, pushed[0].Err
	var taken *DuplicateError
	if errors.As(err, &taken) {
		taken.Key = o.Key // without the job's type
	}
	return id, err
}

// PushMany pushes jobs and returns their ids in order. The options apply to every job, so PushMany
// refuses Unique. If it fails, an SQL store has stored no job. Another store may have stored some:
// then ids ends with the last stored job and has "" for the jobs before it that were not stored.
func (q *Queue) PushMany(ctx context.Context, js []Job, opts ...PushOption) (ids []string, err error) {
	messages := make([]backend.Message, len(js))
	var tx any
	for i, j := range js {
		e, opts, err := q.fromJob(j, opts)
		if err != nil {
			return nil, fmt.Errorf("queue: job %d of %d: %w", i, len(js), err)
		}
		o := q.pushOptions(opts)
		if messages[i], err = q.message(e, o); err != nil {
			return nil, fmt.Errorf("queue: job %d of %d: %w", i, len(js), err)
		}
		if o.OnTaken != 0 {
			return nil, &ConfigError{Option: "Unique", Value: o.Key, Rule: "cannot hold for many jobs"}
		}
		tx = o.Tx
	}
	if len(messages) == 0 {
		return nil, nil
	}
	pushed, err := q.store(ctx, tx, messages)
	if err != nil {
		return nil, err
	}
	return idsOf(pushed)
}

// idsOf returns the ids up to the last stored message, and the first error.
func idsOf(pushed []backend.Pushed) (ids []string, err error) {
	stored := 0
	for i, p := range pushed {
		if p.Err == nil {
			stored = i + 1
		} else if err == nil {
			err = p.Err
		}
	}
	for _, p := range pushed[:stored] {
		ids = append(ids, p.ID)
	}
	return ids, err
}

// store pushes messages, in the caller's transaction if there is one. A push in a transaction wakes
// no worker of this Queue, since none sees the job before the commit.
func (q *Queue) store(ctx context.Context, tx any, messages []backend.Message) ([]backend.Pushed, error) {
	if tx == nil {
		pushed := q.backend.Push(ctx, messages)
		q.workers.wake()
		return pushed, nil
	}
	p, err := as[backend.TxPusher](q, "push in a transaction")
	if err != nil {
		return nil, err
	}
	return p.PushTx(ctx, tx, messages), nil
}
