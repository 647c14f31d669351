// Package kubeconfig adds a cluster to the kubeconfig that a user has, and explains the errors of one that has expired or leads to a server
// that was removed.
//
// It owns the names of contexts, clusters and users in a file that is shared with other clusters: what others have there stays as it is.
// cmd/setpoint calls it; it calls client-go only. Tested with files and with transports that fail.
package kubeconfig
