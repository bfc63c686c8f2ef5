package supervisor

import (
	"bytes"
	"fmt"
	"log/slog"

	"github.com/taskd-go/task/internal/textcut"
)

// maxLine is how many bytes of a line one piece holds. A longer line is cut.
const maxLine = 64 << 10

// Parts of a line that was cut.
const (
	partFirst = "first"
	partMore  = "more"
)

// A piece is one or more whole lines of output, or a part of a long line.
type piece struct {
	data []byte
	from stream
	part string // partFirst or partMore; empty: whole lines
	cut  bool   // the line goes on in the next piece
}

// text returns the line without its end.
func (p *piece) text() string {
	if p.cut {
		return string(p.data)
	}
	return string(bytes.TrimRight(p.data, "\r\n"))
}

func (p *piece) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.Int("worker", p.from.index),
		slog.Int("pid", p.from.pid),
		slog.String("stream", p.from.name),
	}
	if p.part != "" {
		attrs = append(attrs, slog.String("part", p.part))
	}
	return attrs
}

// marked returns the data as lines that other workers' lines may follow. The parts of a long line
// name their worker.
func (p *piece) marked() []byte {
	data := p.data
	if p.part == partMore {
		data = append(fmt.Appendf(nil, "(more of the line, worker %d pid %d) ", p.from.index, p.from.pid), data...)
	}
	switch {
	case p.cut:
		data = fmt.Appendf(data, "%s (worker %d pid %d)\n", textcut.Mark, p.from.index, p.from.pid)
	case !bytes.HasSuffix(data, []byte{'\n'}):
		data = append(data, '\n')
	}
	return data
}

// A splitter cuts output into pieces, for a bufio.Scanner.
type splitter struct {
	many bool   // a piece may have several lines
	part string // of the last piece
	cut  bool   // the last piece was cut
}

func (s *splitter) split(data []byte, atEOF bool) (int, []byte, error) {
	find := bytes.IndexByte
	if s.many && !s.cut {
		find = bytes.LastIndexByte
	}
	n, cut := find(data[:min(len(data), maxLine+1)], '\n')+1, false
	switch {
	case n > 0:
	case len(data) > maxLine:
		n, cut = len(textcut.Prefix(data, maxLine)), true
	case atEOF && len(data) > 0:
		n = len(data)
	default:
		return 0, nil, nil
	}
	switch {
	case s.cut:
		s.part = partMore
	case cut:
		s.part = partFirst
	default:
		s.part = ""
	}
	s.cut = cut
	return n, data[:n], nil
}
