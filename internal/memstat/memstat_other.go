//go:build !linux

package memstat

func raiseOOMScore(int) {}

func oomKills() (uint64, bool) { return 0, false }

func memoryLimit() int64 { return 0 }

func resident(int) int64 { return 0 }
