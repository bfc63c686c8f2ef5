package term

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"text/tabwriter"
)

// A Listing shows a sequence as a table or, for scripts, as one JSON array.
type Listing[T any] struct {
	JSON  bool
	Limit int            // rows; 0: all
	Head  string         // column names with tabs between
	Row   func(T) string // cells with tabs between
}

// Show writes the values of seq to out, until the limit or the first error, which it returns.
func (l Listing[T]) Show(out io.Writer, seq iter.Seq2[T, error]) error {
	buffered := bufio.NewWriter(out)
	print, end := l.table(buffered)
	if l.JSON {
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
		if n++; n == l.Limit {
			break
		}
	}
	if err := end(n); err != nil {
		return err
	}
	return buffered.Flush()
}

func (l Listing[T]) array(out io.Writer) (print func(int, T) error, end func(int) error) {
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

// flushRows is how many rows a table keeps in memory to find the widths of its columns.
const flushRows = 1000

func (l Listing[T]) table(out io.Writer) (print func(int, T) error, end func(int) error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, l.Head)
	print = func(n int, v T) error {
		fmt.Fprintln(w, l.Row(v))
		if n%flushRows == flushRows-1 {
			return w.Flush()
		}
		return nil
	}
	return print, func(int) error { return w.Flush() }
}

// Numbers writes a table of right-aligned columns, each line with tabs between its cells.
func Numbers(out io.Writer, lines ...string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range lines {
		fmt.Fprintln(w, line+"\t")
	}
	return w.Flush()
}
