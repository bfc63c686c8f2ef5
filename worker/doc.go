// Package worker is one worker process of a pool: it accepts connections,
// admits packages, runs tasks, answers them, and drains.
package worker
