// Package sharedstate is the table in shared memory that says what each worker
// of a pool is doing: rows, counters, task ids, and the choice of the least
// loaded worker. It knows no processes; all of it is atomics, no lock lives in
// the table, and a process that dies in the middle of any operation holds up nobody.
package sharedstate
