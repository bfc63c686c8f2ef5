//go:build race

package main

// buildFlags make the command as the test is made, so that a race in a worker ends it.
var buildFlags = []string{"-race"}
