// Package choice says which of upstream's admission plugins run, and judges the flags that choose among them.
//
// It owns the list of all plugins of upstream's kube-apiserver, in upstream's order: which run by default, which may be left out, which may
// be added, and why the others may not. The commands ask it before a server starts; apiserver/admission and server leave out and add
// what it says. It imports nothing.
//
// Promises: a name in a flag is honoured or refused with a reason in one line. What keeps tenants, nodes and the cluster's own objects
// apart cannot be left out. The list is compared with upstream's own in test/differential/lists.
package choice
