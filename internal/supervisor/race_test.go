//go:build race

package supervisor

func init() { raceEnabled = true }
