// Package supervisor runs the worker processes of a pool in the parent: it spawns and watches them,
// and owns the pool's files, sockets and output. It carries out the actions that package lifecycle
// decides on.
package supervisor
