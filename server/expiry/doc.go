// Package expiry tells when the certificates end that a server uses or knows: its own, the authorities', those of the nodes that ask it,
// and the bundles by which it judges webhooks and aggregated API servers.
//
// It owns the metric of them, and what `setpoint cluster status` is told. It keeps nothing: it reads when somebody asks.
//
// Promises: at most Max are told, those that end first, so no number of objects makes /metrics large, and beside them all that a server
// remembers of nodes, which is of 10,000 at most (auth.NodeKeys). Of a bundle the last certificate counts, since until then somebody may be
// trusted by it.
//
// Tested with tables over a store in memory.
package expiry
