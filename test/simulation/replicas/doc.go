// Package replicas plays whole servers on one thread of fake time: the product's store with hashicorp/raft inside, its
// transport, its log in segments and its snapshots, three or five of them and a guest, from one seed.
//
// It owns World, which drives the events one by one: each piece that arrives, each fault, each start is one, and between two of
// them every goroutine is idle (testing/synctest). Delays, order, losses and faults come from the seed. Beside it are the
// network, the files that lose in a power cut what was not synced, the nemesis, the clients, and the judge. Tests call it;
// nobody imports it.
//
// What goes wrong: late and slow pieces, links cut in one direction or both, power cuts, killed and stopped processes, sectors
// and names lost or kept in any order, syncs that take long or fail (EIO, ENOSPC), nearly full disks, snapshots that fail half
// written, disks taken away, a guest that joins and leaves, leaders moved, releases side by side, a crowd of commands in one
// session, a leader with a slow disk, servers that are paused, a restore from a backup by a wrong clock while one server comes
// back with its old directory, and at the end the loss of all disks but one.
//
// Judged after every event: one leader in a term, which has all that any server applied; logs that agree up to their last
// common entry; terms and votes on disk that never go back, one vote in a term; the same state at the same revision; nothing
// lost in a power cut that was synced; reads and writes in the order in which clients were told (linearizable), each write
// once; watches that tell each change once and in order; one life of one cluster. At the end everything serves, and all states
// are the same.
//
// How far one seed is one run: see docs/internals/tests.md. A paused server whose own
// timers stand still too, and term and vote on real files are not played.
//
// Tested by the seeds of each push (-seeds, -seed, -length for more), and by taking mends of the product out (test/mutants).
package replicas
