package measure

import (
	"fmt"
	"strings"
)

// A Kind is what one call asks for.
type Kind string

// A Case is one thing to measure.
type Case struct {
	Kind    Kind
	Size    int // bytes of payload of each task
	Callers int // that call at the same time, each one call after the other
	Batch   int // tasks in one call; 0 means 1
}

// String returns the kind, the size and the number of callers: what -case matches.
func (c Case) String() string {
	return fmt.Sprintf("%s/%s/%d", c.Kind, strings.ReplaceAll(BytesText(c.Size), " ", ""), c.Callers)
}

// Tasks returns how many tasks one call carries.
func (c Case) Tasks() int { return max(c.Batch, 1) }
