// Package ui is `setpoint ui`: it serves the page of a cluster on this machine, and asks the servers for it.
//
// It owns the door: who may come in (rules.go), what may be asked of the servers (questions.go), what may be ordered (orders.go), and how
// they are reached with the credentials of a kubeconfig (servers.go), as `kubectl proxy` does. Package web is the page itself.
//
// Promises: it listens on loopback only. Without the secret in the address nothing is answered, and other pages in the same browser are
// refused even with it. Lists, objects, watches, logs and five questions pass, Secrets and all that runs in or connects to a pod do not.
// Nothing can be changed through it but clusters to learn on: whether a cluster is one, its servers decide. Of a request's headers only
// Accept and Content-Type go to a server. Connections, headers and bodies are bounded, what-ifs are one at a time, and a refused request
// ends its connection. A server that dies, hangs or has no leader is left for the next one of the kubeconfig, but not with an order that
// must not be done twice.
//
// Tested with tables of requests before servers in memory, and through the binary by the script ui.
package ui
