// Package rotations makes a server follow the rotations of keys that are under way (package internal/rotation), and the leader drive them.
//
// It owns what becomes of the states in the store: each server holds what they want of it, by a Mechanism for each kind, and says so to
// whoever asks; the leader looks what all members hold, plans the next phase and writes it; an order of the administrator makes a new key
// and writes the first state, or the way back. It asks other servers by the function that it is handed.
//
// Promises: a server that starts goes on with the keys that it had, and follows only when its replica has caught up. What the leader writes
// carries the fence of its term. While nothing is rotated, nobody is asked and nothing is written; while an old key is only kept, members
// are asked every holdInterval. How long a phase lasts counts from when all hold it, in this life of the cluster: neither a member that is
// away for long nor a restored backup makes it shorter. A server that cannot follow tries again every retryInterval and says why.
//
// Keys of gossip are followed only after who was revoked before, since nodes are handed them. The text of the old key is kept with that of
// the new one, for servers to which a backup of that moment is restored.
//
// The key that encrypts what is stored goes only when nothing needs it, and a server that does not know which one is used encrypts nothing
// (Sealing). Aggregated servers have been told when servers say that they hold an authority of front proxies (Proxies).
//
// Tested in synctest bubbles over an in-memory store; with three processes by the scripts rotate, rotate_gossip, rotate_ca,
// rotate_encryption and rotate_front_proxy.
package rotations
