// Package admission completes and judges objects after decoding and before the
// kind's own rules: one plugin a file, in the order of the list in plugins.go,
// which is upstream's order of its recommended plugins.
//
// apiserver hands the chain to upstream's handlers, and to its own. A plugin is a
// function of the request and of objects that it reads from this replica's tables:
// no request over the network, no second copy, no state. What it does not find here
// it asks the cluster for before it refuses. Webhooks and policies, which users
// write, are upstream's plugins; they cost nothing until the first of them exists
// (see the packages below this one).
//
// Messages are upstream's, since people search for them. Each plugin is tested with
// a table against an in-memory store, the chain through apiserver.
package admission
