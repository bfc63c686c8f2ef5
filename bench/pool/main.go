// Command pool compares the pool with other ways to call another process. All take turns in one
// run. It prints a table for each case, and the aims.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/taskd-go/task"
	"github.com/taskd-go/task/bench/internal/measure"
	"github.com/taskd-go/task/bench/internal/process"
)

// heapSize is how much memory the calling process keeps besides its calls, in bytes, as a real
// program does. Without it the garbage collector would run every few large calls, and dominate the
// figures.
const heapSize = 32 << 20

type settings struct {
	measure.Flags
	chart string
}

func main() {
	task.Register(Echo{})
	task.RunIfWorker(poolConfig)
	if name, ok := process.Served(); ok {
		fatal(fmt.Errorf("%s: %w", name, serve(name)))
	}
	var s settings
	flag.StringVar(&s.chart, "chart", "", "write an SVG bar chart of small calls to this file")
	s.Flags = measure.ParseFlags()
	if err := measure.Profile(s.CPUProfile, s.run); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func (s settings) run() (err error) {
	plan, err := s.plan()
	if err != nil {
		return err
	}
	idle, err := watchIdle()
	if err != nil {
		return err
	}
	sessions, err := open(s.selected())
	defer func() { err = errors.Join(err, sessions.close()) }()
	if err != nil {
		return err
	}
	heap := make([]byte, heapSize)
	defer runtime.KeepAlive(heap)
	results, err := plan.run(sessions, os.Stderr)
	if err != nil {
		return err
	}
	report(os.Stdout, plan, results, idle)
	if s.chart != "" {
		return chart(s.chart, results)
	}
	return nil
}

// plan returns the plan that the flags ask for.
func (s settings) plan() (plan, error) {
	p := plan{rounds: s.Rounds, turn: s.Turn}
	candidates := allCases()
	if s.Quick {
		candidates, p.rounds, p.turn = quickCases(), 3, 100*time.Millisecond
	}
	for _, c := range candidates {
		if s.Cases.MatchString(c.String()) {
			p.cases = append(p.cases, c)
		}
	}
	if len(p.cases) == 0 || p.rounds < 1 || p.turn <= 0 {
		return plan{}, fmt.Errorf("nothing to measure: %d cases match -case %q, %d rounds of %v", len(p.cases),
			s.Cases, p.rounds, p.turn)
	}
	return p, nil
}

// selected returns the contenders that the flags ask for, and always the bare echo, with which the
// others are compared.
func (s settings) selected() []contender {
	var selected []contender
	for _, c := range contenders() {
		if c.name == nameEcho || s.Contenders.MatchString(c.name) {
			selected = append(selected, c)
		}
	}
	return selected
}
