// Program testsummary reads the output of go test -json and prints a line a package, the output of what
// failed, the tests that were skipped, and the numbers of all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// An event is a line of go test -json. Those of a build have an import path in place of a package.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// A summary is what has been read so far. The output of a test is kept until it has passed.
type summary struct {
	passed, failed int
	skipped        []string
	broken         bool // a package failed
	output         map[[2]string]*strings.Builder
}

func main() {
	s := &summary{output: map[[2]string]*strings.Builder{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // of the go command itself
			continue
		}
		s.add(e)
	}
	if len(s.skipped) > 0 {
		fmt.Printf("skipped:\n%s", strings.Join(s.skipped, ""))
	}
	fmt.Printf("tests: %d passed, %d failed, %d skipped\n", s.passed, s.failed, len(s.skipped))
	if err := lines.Err(); err != nil || s.broken || s.failed > 0 {
		fmt.Println("FAIL", err)
		os.Exit(1)
	}
}

func (s *summary) add(e event) {
	key := [2]string{e.Package + e.ImportPath, e.Test}
	switch {
	case e.Output != "":
		if s.output[key] == nil {
			s.output[key] = &strings.Builder{}
		}
		s.output[key].WriteString(e.Output)
		return
	case e.Action == "build-fail":
		s.broken = true
		fmt.Print(s.take(key))
	case e.Test == "":
		s.addPackage(e, s.take(key))
	case e.Action == "pass":
		s.passed++
		s.take(key)
	case e.Action == "fail":
		s.failed++
		fmt.Printf("%s\n%s", e.Package, s.take(key))
	case e.Action == "skip":
		s.skipped = append(s.skipped, fmt.Sprintf("%s %s%s", e.Package, e.Test, reason(s.take(key))))
	}
}

func (s *summary) addPackage(e event, output string) {
	switch e.Action {
	case "pass":
		fmt.Printf("ok   %7.1f s  %s\n", e.Elapsed, e.Package)
	case "fail":
		s.broken = true
		fmt.Printf("%sFAIL %7.1f s  %s\n", output, e.Elapsed, e.Package)
	}
}

// take returns the output of a test or a package and forgets it.
func (s *summary) take(key [2]string) string {
	b := s.output[key]
	delete(s.output, key)
	if b == nil {
		return ""
	}
	return b.String()
}

// reason is the text of a skip, ": " before it.
func reason(output string) string {
	for line := range strings.Lines(output) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") {
			_, words, _ := strings.Cut(text, ": ")
			return ": " + words + "\n"
		}
	}
	return "\n"
}
