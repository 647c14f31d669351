// Package fairness keeps one client from starving another: requests are told apart by
// FlowSchemas, share the concurrency of PriorityLevelConfigurations, and wait in turns.
//
// The request chain passes every request of a client through Handler, between
// authentication and authorization. The wiring feeds it the objects (Follow). The level
// "exempt" never waits; another executes as many requests at once as its shares of
// concurrencyLimit say. Beyond that, a level that queues lets the flow go first that has
// the fewest requests executing, so whoever asks for much waits for himself; a level that
// rejects, or whose queue is full, answers 429 with Retry-After. A watch counts while it
// begins (WatchBegun), a log or a stream never, nor do the loops of this process, which
// must get on.
//
// It is upstream's API, not upstream's library, which costs an ordinary read many times
// more (BenchmarkHandler shows what this does). What differs: each request is one seat, levels do not borrow from
// each other, and flows have exact queues in place of shuffled ones: a flow may hold
// handSize queues' worth of a level's waiting requests.
//
// Matching and sharing are pure and tested with tables; waiting in bubbles, with handlers
// that block.
package fairness
