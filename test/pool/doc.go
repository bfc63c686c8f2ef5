// Package pool holds tests of whole pools: they start, call, kill and stop real worker processes.
package pool
