// Package lifecycle decides what happens to the worker processes of a pool. It is a pure state
// machine: Step takes the time and an Input and returns Actions, which package supervisor carries
// out. It calls no operating system, no network and no clock.
package lifecycle
