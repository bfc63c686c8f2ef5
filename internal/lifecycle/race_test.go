//go:build race

package lifecycle

func init() { raceEnabled = true }
