// Package dnsservice keeps the Service kube-system/kube-dns, by which pods ask for names.
//
// Package controllers runs it, once for each leadership term. It calls client-go and reconcile. agent/net/dns serves, on each node, at
// the address of a Service that has the label which is set here.
//
// Reads: Services. Writes: that Service (create, delete). Owns: it, while it carries the label.
//
// It promises: with the built-in DNS the Service is there, and comes back when somebody deletes it; one that is there, and is
// others', stays as it is. Without it (--dns=none) the Service is removed if it is ours, so that others can make theirs. Nothing is
// written when nothing has changed.
//
// Tests: the loop in a bubble over client-go's fake clientset.
package dnsservice
