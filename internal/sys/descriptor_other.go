//go:build !linux

package sys

const fdDir = "/dev/fd"
