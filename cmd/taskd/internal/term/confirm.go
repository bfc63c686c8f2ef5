package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// ErrNoTerminal means that Confirm has no terminal to ask on.
var ErrNoTerminal = errors.New("not without --yes")

// Confirm asks question on out and returns nil if the answer on in is yes. If in is no terminal it
// returns ErrNoTerminal; if ctx ends first, the error of ctx.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string) error {
	if width(in) == 0 {
		return fmt.Errorf("%s: %w", question, ErrNoTerminal)
	}
	fmt.Fprintf(out, "%s? [y/N] ", question)
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
		return ctx.Err()
	}
}

// Width returns the columns of the terminal that out writes to, 0 if out is no terminal.
func Width(out io.Writer) int { return width(out) }

func width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		return columns
	}
	return 80
}
