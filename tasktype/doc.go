// Package tasktype holds the vocabulary that package task shares with the packages below it: the
// reasons, the events, the delivery of a failed call, the status of a worker. Package task has an
// alias for each name; programs use those.
package tasktype
