package main

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/taskd-go/task/queue"
)

// maxLabel is the length in bytes that every database allows for a name.
const maxLabel = 191

// A label is the name of a queue, or a key.
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

// A queueList is the queues of a worker, in order or with weights.
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

// storedTexts is a list of texts that a database can look for.
type storedTexts struct{ pflag.Value }

func (t storedTexts) Set(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("want texts in UTF-8")
	}
	return t.Value.Set(s)
}

// A priority has a name and a number.
type priority int

var priorities = []string{"low", "normal", "high", "urgent"}

func (p *priority) Set(s string) error {
	for n, name := range priorities {
		if s == name || s == strconv.Itoa(n) {
			*p = priority(n)
			return nil
		}
	}
	return errors.New("want low, normal, high or urgent, or a number from 0 to 3")
}
func (p *priority) String() string { return priorities[*p] }
func (*priority) Type() string     { return "priority" }
