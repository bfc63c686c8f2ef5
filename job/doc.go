// Package job decides what becomes of one unit of background work: it reads the message, runs its handler and
// says whether the job is done, comes again, waits or is dead.
//
// A job travels as an [Envelope], a JSON object of eight members. A [Handler] answers with a [Result]. A [Runner]
// turns that answer into a [Decision] under a [RetryPolicy]; it keeps the time limit and recovers panics. What
// is dead goes to [DeadLetters], from where [Replay] publishes it again.
//
// The package knows no transport and no database. Whoever takes a message from a queue calls [Runner.Run] or
// [Runner.Decide], stores the next state, and acknowledges the message after that: a crash in between gives a
// duplicate and never a loss. Delivery is therefore at least once, and handlers must bear a second run; the job's
// id, or a key of the program's own in meta, is what they recognise it by.
package job
