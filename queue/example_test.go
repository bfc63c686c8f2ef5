package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/taskd-go/task/job"
	"github.com/taskd-go/task/queue"
	"github.com/taskd-go/task/queue/backend"
)

// SendMail is a job. Its exported fields are stored as JSON.
type SendMail struct{ To string }

func (SendMail) JobType() string { return "mail.send" }

func (m SendMail) Handle(ctx context.Context) error {
	if m.To == "" {
		return job.Permanent(errors.New("no address"))
	}
	fmt.Println("mail to", m.To)
	return nil
}

// In a test a push runs the job at once, with the layers and limits that a worker has, and returns
// the job's error.
func ExampleNewSync() {
	handlers, err := job.NewRegistry(queue.HandlerFor[SendMail]())
	if err != nil {
		log.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	q := queue.NewSync(handlers, queue.Logger(quiet), queue.DefaultQueue("mail"),
		queue.Policy(job.RetryPolicy{MaxAttempts: 3, Multiplier: 1}), queue.SyncRunner(&job.Runner{Logger: quiet}))

	ctx := context.Background()
	if _, err := q.Push(ctx, SendMail{To: "ada@example.com"}); err != nil {
		log.Fatal(err)
	}
	_, err = q.Push(ctx, SendMail{})
	var dead *job.DeadError
	fmt.Println(errors.As(err, &dead), err)
	// Output:
	// mail to ada@example.com
	// true no address
}

// The environment chooses a program's queue: here the one that needs no database.
func ExampleConfig() {
	environment := map[string]string{"QUEUE_DRIVER": "sync", "QUEUE_NAME": "mail"}
	config, err := queue.ReadConfig(nil, func(name string) string { return environment[name] })
	if err != nil {
		log.Fatal(err)
	}
	handlers, err := job.NewRegistry(queue.HandlerFor[SendMail]())
	if err != nil {
		log.Fatal(err)
	}
	connect := func(c queue.Config) (backend.Backend, error) {
		return nil, errors.New("this program has no database") // others open the one that c.Connection names
	}
	q, err := config.Open(connect, handlers)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Push(context.Background(), SendMail{To: "bob@example.com"}); err != nil {
		log.Fatal(err)
	}
	// Output: mail to bob@example.com
}

// A call for something that the store cannot do fails with an error that names the store.
func ExampleQueue_Pause() {
	err := queue.NewSync(nil).Pause(context.Background(), "mail")
	fmt.Println(errors.Is(err, queue.ErrUnsupported))
	fmt.Println(err)
	// Output:
	// true
	// queue: not supported: sync has no orders for workers
}
