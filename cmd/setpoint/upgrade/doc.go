// Package upgrade says how a cluster comes to the release that the asking program has: `setpoint upgrade plan`.
//
// It owns the order of the steps, what speaks against one, and the words for it. It changes nothing.
//
// The rules: servers before nodes, one server at a time and the leader last; what a kubelet may be beside its server is upstream's version
// skew policy (https://kubernetes.io/releases/version-skew-policy: as new as the server, or up to three minor versions older). A release
// that does not know the feature level that the cluster has reached cannot be gone back to.
//
// Tested by a table of clusters, and by a script with the real binary (upgrade.txtar).
package upgrade
