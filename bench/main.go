// Command bench runs the pool and other ways to have a call answered by another
// process, or the durable queue and its peers, in turn and in the same run, and prints what they reach.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/taskd-go/task"
)

// heapSize is what the calling process keeps besides its calls, in bytes, as a
// program does that has something to do: the garbage collector of one that
// keeps nothing runs every few calls with large payloads, and is measured instead of them.
const heapSize = 32 << 20

type flags struct {
	rounds     int
	seconds    float64
	cases      string
	contenders string
	quick      bool
	chart      string
	cpuProfile string
	queues     bool
}

func main() {
	task.Register(Echo{})
	task.RunIfWorker(poolConfig)
	serveIfPeer()
	if err := run(parse()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse() flags {
	var f flags
	flag.IntVar(&f.rounds, "rounds", 9, "rounds per case; every contender has its turn in each")
	flag.Float64Var(&f.seconds, "seconds", 0.5, "seconds per turn")
	flag.StringVar(&f.cases, "case", "", "regular expression: only the cases whose name it matches, such as ^sync/64B/8$")
	flag.StringVar(&f.contenders, "contender", "", "regular expression: only the contenders whose name it matches, and the bare echo")
	flag.BoolVar(&f.quick, "quick", false, "a few cases, three short rounds: under a minute, and too few to decide an aim")
	flag.BoolVar(&f.queues, "queues", false, "measure the durable queue and its peers instead of the pool")
	flag.StringVar(&f.chart, "chart", "", "write an SVG bar chart of small calls to this file")
	flag.StringVar(&f.cpuProfile, "cpuprofile", "", "write a CPU profile of this process, the clients' side, to this file")
	flag.Parse()
	return f
}

func run(f flags) (err error) {
	stop, err := f.profile()
	if err != nil {
		return err
	}
	defer stop()
	if f.queues {
		return runQueues(f, os.Stdout, os.Stderr)
	}
	return runPool(f)
}

// profile starts the profile that the flags ask for.
func (f flags) profile() (stop func(), err error) {
	if f.cpuProfile == "" {
		return func() {}, nil
	}
	out, err := os.Create(f.cpuProfile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		out.Close()
	}, nil
}

func runPool(f flags) (err error) {
	plan, err := f.plan()
	if err != nil {
		return err
	}
	field, err := f.field()
	if err != nil {
		return err
	}
	idle, err := watchIdle()
	if err != nil {
		return err
	}
	sessions, err := open(field)
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
	results.idle = idle
	report(os.Stdout, plan, results)
	if f.chart != "" {
		return chart(f.chart, results)
	}
	return nil
}

// plan is what the flags ask to be measured.
func (f flags) plan() (plan, error) {
	only, err := regexp.Compile(f.cases)
	if err != nil {
		return plan{}, fmt.Errorf("-case: %w", err)
	}
	p := plan{rounds: f.rounds, turn: time.Duration(f.seconds * float64(time.Second))}
	candidates := allCases()
	if f.quick {
		candidates, p.rounds, p.turn = quickCases(), 3, 100*time.Millisecond
	}
	for _, c := range candidates {
		if only.MatchString(c.String()) {
			p.cases = append(p.cases, c)
		}
	}
	if len(p.cases) == 0 || p.rounds < 1 || p.turn <= 0 {
		return plan{}, fmt.Errorf("nothing to measure: %d cases match -case %q, %d rounds of %v", len(p.cases), f.cases, p.rounds, p.turn)
	}
	return p, nil
}

// field is the contenders that the flags ask for. The bare echo is always
// there: it is what the others are compared with.
func (f flags) field() ([]contender, error) {
	only, err := regexp.Compile(f.contenders)
	if err != nil {
		return nil, fmt.Errorf("-contender: %w", err)
	}
	var field []contender
	for _, c := range contenders() {
		if c.name == nameEcho || only.MatchString(c.name) {
			field = append(field, c)
		}
	}
	return field, nil
}
