//go:build !race

package main

// buildFlags make the command as the test is made.
var buildFlags []string
