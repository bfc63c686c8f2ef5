package sys

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxPassed is the kernel's limit for the descriptors in one message.
const maxPassed = 253

// SendFile sends msg, which must not be empty, together with a duplicate of the descriptor of f.
func SendFile(c *net.UnixConn, msg []byte, f *os.File) error {
	if len(msg) == 0 {
		return errors.New("send a descriptor: the message that carries it must not be empty")
	}
	var n int
	err := WithFD(f, func(fd int) (err error) {
		n, _, err = c.WriteMsgUnix(msg, unix.UnixRights(fd), nil)
		return err
	})
	if err == nil && n < len(msg) {
		_, err = c.Write(msg[n:])
	}
	if err != nil {
		return fmt.Errorf("send descriptor of %s: %w", f.Name(), err)
	}
	return nil
}

// RecvFile reads a message of SendFile into buf, and returns the file of its descriptor, which is
// close-on-exec. A message without a descriptor is an error. RecvFile closes further descriptors.
// At the end of the stream the error is io.EOF.
func RecvFile(c *net.UnixConn, buf []byte) (n int, f *os.File, err error) {
	oob := make([]byte, unix.CmsgSpace(maxPassed*4))
	n, oobn, _, _, err := c.ReadMsgUnix(buf, oob)
	if errors.Is(err, io.EOF) {
		return 0, nil, io.EOF
	}
	if err != nil {
		return n, nil, fmt.Errorf("receive descriptor: %w", err)
	}
	fds, err := parseRights(oob[:oobn])
	if err != nil {
		return n, nil, fmt.Errorf("receive descriptor: %w", err)
	}
	if len(fds) == 0 {
		return n, nil, fmt.Errorf("receive descriptor: a message of %d bytes came without one", n)
	}
	for _, extra := range fds[1:] {
		_ = unix.Close(extra)
	}
	return n, os.NewFile(uintptr(fds[0]), "received"), nil
}

func parseRights(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if some, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, some...)
		}
	}
	return fds, nil
}
