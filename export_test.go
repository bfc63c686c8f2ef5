package task

import "github.com/taskd-go/task/sharedstate"

// Table is the pool's table, for tests that put it out of balance.
func (t *Task) Table() *sharedstate.Table { return t.pool.Table() }

var Processors = processors
