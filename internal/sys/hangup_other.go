//go:build !linux

package sys

import (
	"errors"
	"net"
)

// AwaitHangup returns an error: this system does not tell a closed peer from one that has only shut
// down its writing side.
func AwaitHangup(*net.UnixConn) error { return errors.ErrUnsupported }
