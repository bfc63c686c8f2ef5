// Package backend defines the interface between package queue and the stores of jobs: [Backend],
// its records and its errors. A program that pushes and runs jobs uses package queue and the
// package of a store, such as queue/sqlqueue. A new store implements Backend; queue/queuetest tests
// it.
//
// # Who does what
//
// A store keeps messages and delivers each to one worker at a time. Package queue does the rest: it
// encodes jobs, draws the order of the queues, runs handlers, decides what becomes of a job, sends
// completions in batches and tries failed ones again, and calls the methods of jobs. A store
// decides nothing about a job: it stores what a [Completion] says.
//
// # What every store promises
//
//   - If a push returns no error, the message is stored and the store has confirmed it.
//   - A message is delivered at least once. Its next state is stored and confirmed before the
//     delivery is acknowledged: a crash in between repeats the job with the same id, and never
//     loses it.
//   - A [Receipt] stands for one delivery. Once another worker has the message, or the connection
//     that it belongs to is gone, Extend and Complete change nothing and return [ErrLost].
//   - Receive returns at most as many deliveries as it is asked for, and completes no open one.
//   - A message that Receive took but could not return, for example because its context ended, is
//     given back or delivered later.
//   - A message with a long delay does not hold up others.
//   - An outage of any length changes no job. A store reconnects by itself and does not give up.
//   - Open refuses a setting that would lose jobs, with an error that wraps [ErrSetup] and names
//     the setting.
//
// # What a store can do
//
// [Capabilities] says which options of a push a store supports. Other abilities are optional
// interfaces, which package queue finds by type assertion: [TxPusher], [Control], [Admin] and
// [Locker] on a Backend, [Sweeper] and [Tidier] on a Consumer, [Waker] on either. If a store has
// such an interface but lacks one of its methods, that method returns the error of [Unsupported].
package backend
