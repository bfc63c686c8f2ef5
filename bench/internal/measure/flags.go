package measure

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"runtime/pprof"
	"time"
)

// Flags are the flags that both benchmarks have.
type Flags struct {
	Rounds     int
	Turn       time.Duration // of one contender in one round
	Cases      *regexp.Regexp
	Contenders *regexp.Regexp
	Quick      bool
	CPUProfile string
}

// ParseFlags defines the flags and parses the command line, with the flags that the program has
// defined before.
func ParseFlags() Flags {
	var f Flags
	seconds := 0.5
	f.Cases, f.Contenders = regexp.MustCompile(""), regexp.MustCompile("")
	flag.IntVar(&f.Rounds, "rounds", 9, "rounds per case; every contender has its turn in each")
	flag.Float64Var(&seconds, "seconds", seconds, "seconds per turn")
	flag.TextVar(f.Cases, "case", f.Cases, "regular expression: only the cases whose name it matches")
	flag.TextVar(f.Contenders, "contender", f.Contenders, "regular expression: only the contenders whose name it matches")
	flag.BoolVar(&f.Quick, "quick", false, "three short rounds: under a minute, and too few to decide an aim")
	flag.StringVar(&f.CPUProfile, "cpuprofile", "", "write a CPU profile of this process to this file")
	flag.Parse()
	f.Turn = time.Duration(seconds * float64(time.Second))
	return f
}

// Profile runs f, and writes a CPU profile of it to file if that is not empty.
func Profile(file string, f func() error) (err error) {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return f()
}
