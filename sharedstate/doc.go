// Package sharedstate is the table in shared memory that says what each worker of a pool is doing:
// rows, counters, task ids, and the choice of the least loaded worker. It starts and watches no
// processes. The table consists of atomic words and has no lock, so a process that dies in the
// middle of an operation holds up no other.
//
// Three types keep the rules of access. A Row reads. The parent, which creates the table, writes
// through Parent and ParentRow; a worker writes its own row through WorkerRow.
package sharedstate
