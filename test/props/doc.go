// Package props holds what must be true of jobs and their layers for any input: random policies, random calls on a
// store under a moving clock, random onions. It has tests only, and is a module of its own for the sake of their
// library.
package props
