package measure

import (
	"fmt"
	"strings"
)

// A Kind is a kind of call.
type Kind string

// A Case is one measurement.
type Case struct {
	Kind    Kind
	Size    int // bytes of payload in each task
	Callers int // concurrent callers; each makes one call after another
	Batch   int // tasks in one call; 0: one
}

// String returns kind, size and callers, such as sync/64B/8. The flag -case matches it.
func (c Case) String() string {
	return fmt.Sprintf("%s/%s/%d", c.Kind, strings.ReplaceAll(BytesText(c.Size), " ", ""), c.Callers)
}

// Tasks returns the number of tasks in one call.
func (c Case) Tasks() int { return max(c.Batch, 1) }
