// Package podsapi tells programs on the node which pods it has and how they are (k8s.io/kubelet/pkg/apis/pods/v1alpha1), as a kubelet does
// at pods-api/pods-api.sock: from the agent itself, sooner than the API hears of it, and also while no server can be reached.
//
// It owns: that socket, and the newest status of each pod that the agent has found out. The pods' workers say what has changed. Which pods
// there are it asks of agent/pods each time.
//
// Promises: read only. A watcher is sent what differs from what it was sent before, so a slow one misses states in between and never
// the last one, and costs no queue. Calls beyond 100 in a second and watchers beyond 100 are refused with ResourceExhausted. Before the
// API has told of the node's pods the answer is FailedPrecondition, as a kubelet's.
//
// Tested by a client on the socket.
package podsapi
