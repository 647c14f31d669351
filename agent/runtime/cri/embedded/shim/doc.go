// Package shim is the process that stays beside each pod: parent of its containers, keeper of their logs and exit
// codes, holder of the pod's network, IPC and UTS namespaces; those of a pod with a user namespace are held by its pause process.
//
// It owns the pod's control socket (shim.sock in the sandbox directory), the containers' output pipes, their CRI log
// files and exit files. The embedded runtime starts it ([Main], by re-executing a binary under the name [Name]) and
// speaks to it through [Client]; the shim starts containers by re-executing itself as package boot's Init,
// and a pod's pause process as its Pause. It may call only boot, the standard library and golang.org/x/sys,
// so that a small helper executable can be built from it.
//
// It promises: it survives the agent; every line a container wrote before it ended is in the log before the
// exit is recorded; an exit is on disk (fsync) before anyone is told; when the shim itself is killed, the
// kernel kills its containers, so no container runs without a record. A slow attach client loses its
// connection, never blocks the container. Tested through the embedded runtime with real processes, and the log
// writer alone.
package shim
