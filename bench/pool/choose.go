package main

import (
	"testing"

	"github.com/taskd-go/task/bench/internal/measure"
	"github.com/taskd-go/task/sharedstate"
)

// chooseTime returns how long it takes to choose among workers with different loads, in
// nanoseconds.
func chooseTime(workers int) float64 {
	table, err := sharedstate.Create(workers, 128)
	if err != nil {
		return measure.NotMeasured
	}
	defer table.Close()
	for i := range workers {
		row, err := table.Allocate(i, 1)
		if err != nil {
			return measure.NotMeasured
		}
		row.SetPID(1)
		worker := table.WorkerRow(row.Number())
		worker.SetAccepting(true)
		table.SetCurrent(i, row)
		for range 1 + i%3 {
			worker.Admit()
		}
	}
	chooser := sharedstate.NewChooser(table.Table)
	defer chooser.Close()
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			row, _ := chooser.Pick()
			chooser.Done(row)
		}
	})
	return float64(result.T.Nanoseconds()) / float64(result.N)
}
