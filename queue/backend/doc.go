// Package backend defines what package queue and the stores that keep jobs know of each other: the
// interface [Backend], its records and its errors. A program that pushes and works
// jobs needs package queue and the package of a store, such as queue/sqlqueue. A new store
// implements Backend and is tested with queue/queuetest.
//
// # Who does what
//
// A store keeps messages and hands each to one worker at a time. Package queue does the rest: it
// encodes jobs, draws the order of the queues, runs handlers, decides what becomes of a job, stores
// completions in batches and tries them again, and calls the methods of jobs. A store decides
// nothing about a job: it stores what a [Completion] says.
//
// # What every store promises
//
//   - A push without an error is stored and confirmed.
//   - A message is delivered at least once. Its next state is stored and confirmed before the
//     delivery is acknowledged: a crash in between repeats the job with the same id, and never
//     loses it.
//   - A [Receipt] stands for one delivery. When another worker has the message by now, or the
//     delivery came over a connection that is gone, Extend and Complete change nothing and return
//     [ErrLost].
//   - Receive returns at most as many deliveries as it is asked for, and completes no open one.
//   - What Receive took and could not return, for example because its context ended, goes back or
//     is delivered later.
//   - A long delay of one message holds up no other.
//   - An outage of any length changes no job. A store reconnects by itself and does not give up.
//   - A setting that would lose jobs is refused with an error that wraps [ErrSetup] and names it.
//
// # What a store can do
//
// [Capabilities] says which options of a push a store honours. Further abilities are optional
// interfaces, which package queue finds by type assertion: [TxPusher], [Control], [Admin] and
// [Locker] on a Backend, [Sweeper] and [Tidier] on a Consumer, [Waker] on either. A method of these
// that a store cannot do returns [Unsupported].
package backend
