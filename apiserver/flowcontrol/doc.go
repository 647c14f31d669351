// Package flowcontrol is API priority and fairness: FlowSchemas classify requests, PriorityLevelConfigurations
// limit how many run at once, and the rest wait in fair queues, so that no client starves another.
//
// The request chain passes every request of a client through Handler, between authentication and authorization. Package
// server feeds it the objects (Follow). The level "exempt" never waits; another has as many seats as its shares of
// concurrencyLimit say. A request takes one; a list takes more, by the objects and bytes that it reads (width.go).
// Beyond that, a level that queues serves the tenant with the fewest seats first, and of his flows the one with the
// fewest, so a client that sends many requests delays only itself. The service accounts of a namespace are one tenant,
// who leaves an eighth of the seats, and of the waiting room, to others; a list, which takes several seats at once, may
// take some of them. A level that rejects, or whose queue is full,
// answers 429 with Retry-After. A watch counts while it begins (WatchBegun), a log or a stream never, nor do the loops
// of this process, which must get on.
//
// It is upstream's API, not upstream's library, which costs an ordinary read many times
// more (BenchmarkHandler shows what this does). What differs: levels do not borrow from
// each other, and flows have exact queues in place of shuffled ones: a flow may hold
// handSize queues' worth of a level's waiting requests.
//
// Matching and sharing are pure and tested with tables; waiting in bubbles, with handlers
// that block.
package flowcontrol
