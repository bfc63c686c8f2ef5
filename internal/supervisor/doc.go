// Package supervisor is the parent's side of a pool: it spawns workers, watches them, restarts,
// recycles and replaces them, and ends them. Its decisions are a pure state machine (events in,
// actions out); a thin layer under it carries the actions out.
package supervisor
