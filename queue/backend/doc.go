// Package backend defines the seam between package queue and the stores that keep jobs: the
// interface [Backend], the records that cross it, and its errors. A program that pushes and works
// jobs needs package queue and the package of a store, such as queue/sqlqueue. Whoever writes a
// store implements Backend and tests it with queue/queuetest.
//
// # Who does what
//
// A store keeps messages and hands each to one worker at a time. Package queue does the rest: it
// encodes jobs, draws the order of the queues, runs handlers, decides what becomes of a job,
// batches completions and repeats them, and calls hooks. So a store decides nothing about a job: it
// stores what a [Completion] says.
//
// # What every store promises
//
//   - A push without an error is stored and confirmed.
//   - A message is delivered at least once. Its next state is stored and confirmed before the delivery is
//     acknowledged: a crash in between repeats the job with the same id, and never loses it.
//   - A [Receipt] stands for one delivery. When the delivery is another's by now, or came over a connection that is
//     gone, Extend and Complete change nothing and answer [ErrLost].
//   - Receive takes at most as many deliveries as it is asked for, and settles none that is open.
//   - What Receive took and could not return, such as after its context ended, is given back or delivered later.
//   - A long delay of one message holds up no other.
//   - An outage of any length changes no job. A store reconnects by itself and does not give up.
//   - What would lose jobs is refused with an error that wraps [ErrSetup] and names the setting to change.
//
// # What a store can do
//
// [Capabilities] says which options of a push a store honours. Further abilities are optional
// interfaces, which package queue finds by type assertion: [TxPusher], [Control], [Admin], [Locker]
// and [Waker] on a Backend, [Sweeper] and [Tidier] on a Consumer. A store that can do a part of one
// answers the rest with [Unsupported].
package backend
