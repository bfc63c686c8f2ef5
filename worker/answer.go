package worker

import (
	"fmt"

	"github.com/taskd-go/task/internal/codec"
	"github.com/taskd-go/task/internal/textcut"
	"github.com/taskd-go/task/protocol"
)

const (
	maxText     = 64 << 10 // bytes of a failure's message
	frameMargin = 64       // bytes, more than a response needs around its message
)

// acceptedFrame returns the answer to an asynchronous call that has a slot.
func (s *Server) acceptedFrame(id, taskID uint64) *buffer {
	b := s.buffers.get(0)
	b.b = protocol.AppendResponse(protocol.BeginFrame(b.b), &protocol.Response{ID: id, OK: true, TaskID: taskID})
	s.end(b)
	return b
}

// resultFrame encodes the task's value. whole is false if the value cannot be encoded or is over
// the limit; then the frame holds that failure.
func (k *call) resultFrame() (b *buffer, whole bool) {
	s := k.s
	b = s.buffers.get(int(k.typ.large.Load()))
	data, err := codec.Append(
		protocol.AppendResponseHead(protocol.BeginFrame(b.b), k.id, true, protocol.StatusOK),
		k.value,
	)
	if err != nil {
		s.buffers.put(b)
		return k.fail(
			protocol.StatusTaskError,
			fmt.Sprintf("the result, a %T, cannot be encoded: %s", k.value, textOf(err)),
		), false
	}
	b.b = protocol.AppendResponseTail(data, k.taskID)
	k.typ.answered(len(b.b))
	s.noticeLarge(len(b.b))
	if err := protocol.EndFrame(b.b, s.cfg.MaxPackageSize); err != nil {
		text := fmt.Sprintf("the response would have %d bytes, the limit is %d", len(b.b), s.cfg.MaxPackageSize)
		s.buffers.put(b)
		return k.fail(protocol.StatusResponseTooLarge, text), false
	}
	return b, true
}

// noticeLarge reports the first large frame.
func (s *Server) noticeLarge(size int) {
	if size >= largeFrame && s.cfg.OnLarge != nil {
		s.large.Do(s.cfg.OnLarge)
	}
}

// answered stores the size of a large answer, so that the next one begins in a buffer of that size.
func (t *taskType) answered(size int) {
	if size <= smallBuffer {
		size = 0
	}
	if t.large.Load() != int64(size) {
		t.large.Store(int64(size))
	}
}

// failureFrame returns an answer with a status and a message, which it cuts if it is too long.
func (s *Server) failureFrame(id uint64, status protocol.Status, text string, taskID uint64) *buffer {
	b := s.buffers.get(0)
	b.b = protocol.AppendResponseHead(protocol.BeginFrame(b.b), id, false, status)
	b.b = protocol.AppendText(b.b, textcut.To(text, min(maxText, s.cfg.MaxPackageSize-frameMargin)))
	b.b = protocol.AppendResponseTail(b.b, taskID)
	s.end(b)
	return b
}

// end finishes a frame that is known to fit.
func (s *Server) end(b *buffer) {
	if err := protocol.EndFrame(b.b, s.cfg.MaxPackageSize); err != nil {
		// The limit is at least MinPackageSize, so this does not happen.
		s.log.Error("an answer does not fit", "worker", s.cfg.Index, "err", err)
		b.b = b.b[:0]
	}
}
