// Package raftstore is the replicated store: objects under keys, one revision
// counter, on as many servers as a raft cluster has.
//
// It owns the face of the store (Propose, ReadIndex, Watch, Leadership), the sessions that make retried writes take
// effect once, group commit, forwarding of writes and reads to the leader, the comparison of the replicas' states
// (compare.go), who is a member (founding, joining, coming back, leaving), the early election after the leader was
// killed, whether this server has a leader (contact.go), who leads when a disk is slow, the refusal of writes before most
// disks are full, feature levels, and what is done offline: restore and recovery, which begin a new life of the cluster.
// It may import the packages below it, connectrpc.com/connect and internal/aligned; nothing of ours beside, and nothing of Kubernetes.
//
// Promises:
//   - A result of Propose is durable on a quorum. A command takes effect once,
//     however often it had to be sent. If nobody can know whether it took effect,
//     the error wraps ErrOutcomeUnknown.
//   - ReadIndex, on any replica, returns a state with every write that was
//     acknowledged before the call, by whichever replica.
//   - Led ends within seconds after this server has lost its leader; then nothing waits for one longer than a
//     second, beside a try that has begun (forwardLimit).
//   - Root, RootAt, WaitRevision and Watch are local and may lag behind.
//   - Leadership reports Leader only when reads and fenced writes may begin.
//   - Shutdown hands leadership over and returns after all goroutines ended, or, when
//     the disk hangs, after the limits named in it and in replica.Close.
//
// Any method may be called from any goroutine. Those with a context wait no
// longer than it; without a deadline they end by the limits named beside them.
//
// Tested in bubbles of fake time with partitions and crashes, over real sockets
// with files, and by a benchmark of committed writes.
package raftstore
