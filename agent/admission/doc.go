// Package admission says whether a node takes a pod: whether others leave room for it, its ports are free, and the node declares what the
// pod's spec asks of a kubelet.
//
// It owns nothing. Called by: agent/pods, for a pod that has never run here and for resizes. Promises: it is pure, and its reasons and
// messages are a kubelet's. Tested with tables.
package admission
