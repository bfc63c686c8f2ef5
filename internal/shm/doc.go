// Package shm creates and maps memory that several processes share, and wakes sleepers on a word of
// it.
package shm
