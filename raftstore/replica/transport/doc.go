// Package transport carries the messages of raft between members, over connections
// that others dial, accept and authenticate.
//
// It owns the connections in both directions, whom they call, and when each peer answered last, for which
// leader, and how much of the log it acknowledged. It is part of the one place that imports hashicorp/raft.
//
// Promises: a connection reaches the member that it calls by its id, or is closed: a certificate proves a
// server's name, and a machine that was replaced may still run under it. The addresses are asked for anew at
// each dial. A pipeline that met a refusal does not lock up its sender. A peer that comes back gets entries
// with its first heartbeat, however long it was away. A follower learns of a commit that no entries follow within
// Timing.CommitTimeout and a message, and an idle leader has no timer for it. A request for a vote reaches a peer that is up even if an
// earlier connection to it has broken. This server gives no vote before the other members that answer have told
// what it had on its disk, nor after it has stopped. Nothing that arrives here changes raft's term or state
// beside raft's main loop; a follower that is busy with its disk answers heartbeats of its term all the same. Heartbeats to a
// peer are held back while none to it is late and nobody waits for answers, and two are then meant to be no further apart than Config.Beat.
//
// Tested by itself where the library's own behaviour is the trap, and through
// raftstore in bubbles of fake time and over real sockets.
package transport
