package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// mail is the shop's mail server. It can be down.
var mail struct {
	sync.Mutex
	down bool
}

func setMail(down bool) {
	mail.Lock()
	defer mail.Unlock()
	mail.down = down
}

// send sends a mail about an order.
func send(_ context.Context, what string, orderID int) error {
	mail.Lock()
	defer mail.Unlock()
	if mail.down {
		return errors.New("the mail server is down")
	}
	fmt.Printf("%s for order %d\n", what, orderID)
	return nil
}

var (
	errCancelled = errors.New("the order was cancelled")
	errAddress   = errors.New("no such address")
	errClosed    = errors.New("the carrier is closed")
	errBusy      = errors.New("the carrier is busy")
)

// A carrier answers the calls for one order with these errors in turn, then with success.
type carrier struct {
	mu      sync.Mutex
	answers map[int][]error
}

func (c *carrier) ship(_ context.Context, orderID int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answers := c.answers[orderID]; len(answers) > 0 {
		c.answers[orderID] = answers[1:]
		return answers[0]
	}
	fmt.Println("shipped order", orderID)
	return nil
}
