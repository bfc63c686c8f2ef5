package queuecmd

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskd-go/task/queue"
)

// maxLabel is the length in bytes that every database allows for a name.
const maxLabel = 191

// A label is a flag's value that is the name of a queue, or a key.
type label string

func (l *label) Set(s string) error {
	if s == "" || len(s) > maxLabel || !utf8.ValidString(s) {
		return fmt.Errorf("want a text of 1 to %d bytes in UTF-8", maxLabel)
	}
	*l = label(s)
	return nil
}

func (l *label) String() string { return string(*l) }
func (*label) Type() string     { return "text" }

func addQueueFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().Var((*label)(name), "queue", "one queue (default: every queue)")
}

// everyQueue says what --queue means.
func everyQueue(name string) string {
	if name == "" {
		return "every queue"
	}
	return "queue " + name
}

// A queueList is a flag's value that names the queues of a worker, in order or with weights.
type queueList string

func (l *queueList) Set(s string) error {
	var config *queue.ConfigError
	if errors.As(queue.CheckQueues(s), &config) {
		return errors.New(config.Rule)
	}
	*l = queueList(s)
	return nil
}

func (l *queueList) String() string { return string(*l) }
func (*queueList) Type() string     { return "queues" }

// storedTexts is a flag's value that is a list of texts which a database can store.
type storedTexts struct{ pflag.Value }

func (t storedTexts) Set(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("want texts in UTF-8")
	}
	return t.Value.Set(s)
}

// A priority is a flag's value that is the name or the number of a priority.
type priority int

func (priority) names() []string { return []string{"low", "normal", "high", "urgent"} }

func (p *priority) Set(s string) error {
	for n, name := range p.names() {
		if s == name || s == strconv.Itoa(n) {
			*p = priority(n)
			return nil
		}
	}
	return errors.New("want low, normal, high or urgent, or a number from 0 to 3")
}

func (p *priority) String() string { return p.names()[*p] }
func (*priority) Type() string     { return "priority" }

// A moment is a flag's value that is a point in time: RFC 3339, or a time span before now.
type moment struct{ p *time.Time }

func (m moment) Set(s string) error {
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		*m.p = time.Now().Add(-ago)
		return nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("want a time such as 2026-01-31T12:00:00Z, or 2h for two hours ago")
	}
	*m.p = t
	return nil
}

func (m moment) String() string {
	if m.p == nil || m.p.IsZero() {
		return ""
	}
	return m.p.Format(time.RFC3339)
}

func (moment) Type() string { return "time" }
