//go:build !linux

package sqlite

import (
	"context"
	"os"
	"time"
)

// changes are those of a file, by its size and time: a look each few milliseconds costs next to nothing.
type changes struct {
	ctx  context.Context
	file string
	last os.FileInfo
}

const lookEvery = 5 * time.Millisecond

func watch(ctx context.Context, file string) (*changes, error) {
	info, err := os.Stat(file)
	return &changes{ctx, file, info}, err
}

// next waits for a change.
func (c *changes) next() error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-ticker.C:
		}
		info, err := os.Stat(c.file)
		if err != nil {
			return err
		}
		if !info.ModTime().Equal(c.last.ModTime()) || info.Size() != c.last.Size() {
			c.last = info
			return nil
		}
	}
}

func (*changes) close() {}
