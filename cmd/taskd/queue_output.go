package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// writeJSON prints a value on a line.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// A listing is a sequence to be shown as a table or, for scripts, as one JSON array.
type listing[T any] struct {
	json  bool
	limit int    // 0: none
	head  string // columns with tabs between
	row   func(T) string
}

func (l listing[T]) show(out io.Writer, seq iter.Seq2[T, error]) error {
	buffered := bufio.NewWriter(out)
	print, end := l.table(buffered)
	if l.json {
		print, end = l.array(buffered)
	}
	n := 0
	for v, err := range seq {
		if err == nil {
			err = print(n, v)
		}
		if err != nil {
			buffered.Flush()
			return err
		}
		if n++; n == l.limit {
			break
		}
	}
	if err := end(n); err != nil {
		return err
	}
	return buffered.Flush()
}

func (l listing[T]) array(out io.Writer) (print func(int, T) error, end func(int) error) {
	print = func(n int, v T) error {
		before := ",\n"
		if n == 0 {
			before = "[\n"
		}
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s%s", before, text)
		return err
	}
	end = func(n int) error {
		text := "\n]\n"
		if n == 0 {
			text = "[]\n"
		}
		_, err := io.WriteString(out, text)
		return err
	}
	return print, end
}

// flushRows bounds how many rows a table holds back to find its widths.
const flushRows = 1000

func (l listing[T]) table(out io.Writer) (print func(int, T) error, end func(int) error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, l.head)
	print = func(n int, v T) error {
		fmt.Fprintln(w, l.row(v))
		if n%flushRows == flushRows-1 {
			return w.Flush()
		}
		return nil
	}
	return print, func(int) error { return w.Flush() }
}

// cell is a text from elsewhere as one line of at most width letters, without what a terminal would obey.
func cell(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width-1]) + "…"
	}
	return text
}

// stamp is a time as tables show it.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// confirm asks on a terminal; elsewhere --yes must be given.
func confirm(ctx context.Context, cmd *cobra.Command, question string) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usagef("%s: not without --yes", question)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case said := <-answer:
		if said == "y" || said == "yes" {
			return nil
		}
		return errors.New("nothing was done")
	case <-ctx.Done():
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
}

// everyQueue says in words what --queue means.
func everyQueue(name string) string {
	if name == "" {
		return "every queue"
	}
	return "queue " + name
}
