//go:build !race

package main

// buildFlags make the command as the test is made.
var buildFlags []string

// slack stretches upper bounds under the race detector.
const slack = 1
