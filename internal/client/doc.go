// Package client carries one process's calls to the workers: it chooses,
// connects, sends, waits within one budget, and says what a caller may believe
// after a failure.
package client
