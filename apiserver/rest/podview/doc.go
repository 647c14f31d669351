// Package podview is what a node sees of pods that are not its own.
//
// Nodes enforce network policies, so they follow the pods of all nodes; they need labels, addresses and the names of ports for
// that, and not what is secret in a pod: environment, commands, annotations. Of its own pods, which it asks for by the field
// spec.nodeName, a node sees everything.
//
// It owns the decision and the view. apiserver/rest asks it at each list and watch of pods; it calls apiserver/auth to know
// nodes. It is tested through apiserver, by requests as nodes send them.
package podview
