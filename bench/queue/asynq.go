package main

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

func openAsynq(_ context.Context, place string) (session, error) {
	opts, err := redis.ParseURL(place)
	if err != nil {
		return session{}, err
	}
	opts.DB = redisDB
	db := redis.NewClient(opts)
	client := asynq.NewClientFromRedisClient(db)
	return session{
		push: func(ctx context.Context, n int) error {
			body, err := json.Marshal(benchJob{n, note})
			if err != nil {
				return err
			}
			_, err = client.EnqueueContext(ctx, asynq.NewTask("nothing", body))
			return err
		},
		work: func(ctx context.Context, n int, began func()) (time.Time, error) {
			return asynqWork(ctx, db, n, began)
		},
		clear: func(ctx context.Context) error { return db.FlushDB(ctx).Err() },
		close: db.Close,
	}, nil
}

// asynqWork stops the clock in the last handler, before asynq marks that task as done.
func asynqWork(ctx context.Context, db *redis.Client, n int, began func()) (time.Time, error) {
	ended := make(chan time.Time, 1)
	var seen atomic.Int64
	server := asynq.NewServerFromRedisClient(db, asynq.Config{Concurrency: 100, LogLevel: asynq.FatalLevel})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		began()
		var j benchJob
		if err := json.Unmarshal(t.Payload(), &j); err != nil {
			return err
		}
		if seen.Add(1) == int64(n) {
			ended <- time.Now()
		}
		return nil
	}))
	if err != nil {
		return time.Time{}, err
	}
	defer server.Shutdown()
	select {
	case end := <-ended:
		return end, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}
