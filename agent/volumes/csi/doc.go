// Package csi uses CSI drivers on this node: it asks them to stage, publish and expand the volumes of pods, and to take them away
// again, as a kubelet does.
//
// It owns: below the data directory plugins/kubernetes.io/csi, and in a pod's directory volumes/kubernetes.io~csi and
// volumeDevices/kubernetes.io~csi, with upstream's names and vol_data.json in each. It may call: client-go, the drivers' sockets.
//
// Promises: what is asked of a driver is on disk before it is asked, so an agent that was killed finds what it has to take away;
// a volume is staged before any pod's is published, and unstaged, by a goroutine of its own, after the last is unpublished. It
// stays in InUse until then, and nothing is published before the Node says so, if the volume has to be attached. Every call has a
// limit (CallTimeout), of one that takes longer than Patience the pod is told, calls about one volume come one after another, and
// no volume waits for another one's driver. Mount may be repeated: a driver hears it again only if it asked for that
// (requiresRepublish) or if nothing is mounted any more. When a driver registers, Affected hears of the pods that may have waited
// for it, and it is asked again for the node's limit as its CSIDriver says (limits.go). No folder is removed with what is in it:
// what a driver left mounted stays, and is an error.
//
// Locks: Manager.mu is held for reading and changing maps only; a volume's turn is taken before it, and held during calls.
//
// Tested with a driver that records its calls, on a socket of the test, and in bubbles where time matters; the agent's test uses
// a driver that mounts.
package csi
