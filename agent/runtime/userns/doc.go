// Package userns gives pods user namespaces: which pods have one, and which of the host's users are theirs.
//
// It owns the ranges of user ids of one node and the file in each pod's directory that says which one the pod has, with a kubelet's
// name and form. agent/pods asks it before it makes a pod's sandbox and for each container; the ranges are those that /etc/subuid and
// /etc/subgid give the user kubelet, if there is one, as a kubelet takes them.
//
// It promises: no two pods have a user in common, after a restart of the agent either, for as long as their directories exist; a pod
// that has a range keeps it, whatever the mode becomes; a range is free once the pod's directory is gone. Tested with tables and in a
// directory of the test; with real containers by the script userns.
package userns
