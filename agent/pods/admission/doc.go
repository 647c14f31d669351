// Package admission says whether a node takes a pod: whether others leave room for it, its ports are free, and the node declares what the
// pod's spec asks of a kubelet.
//
// It owns nothing. It judges pods that have never run here, and resizes. Promises: it is pure, and its reasons and messages are a
// kubelet's. Tested with tables.
package admission
