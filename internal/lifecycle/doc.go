// Package lifecycle decides what happens to the worker processes of a pool. It is a pure state
// machine: Step takes the time and an Input and returns Actions, which package supervisor carries
// out. It makes no system call, uses no network and reads no clock.
package lifecycle
