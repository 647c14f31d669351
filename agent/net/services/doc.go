// Package services makes the addresses of Services work on a node, as kube-proxy does elsewhere: cluster addresses, node ports,
// external addresses and those of load balancers.
//
// It owns: which endpoints stand behind an address, as the Services and EndpointSlices of the cluster say and as seen from this
// node and its zone; which of several Services has an address that they all claim (the oldest); what of a Service is not served because it
// is the cluster's own (internal/reserved); and the servers on healthCheckNodePorts. The agent calls Watch with its informers, and
// agent/host gives it the network (a [Network], which is agent/net/network's Translation). It may call client-go and knows the network's
// types only. `setpoint net trace` asks NewLookup for the same plans.
//
// Promises: a change reaches the network within [settleTime] of being seen; many at once are one change, its cost depends on what changed,
// and what changes nothing for the network is not handed on. While the API is away the last known state holds. The keeper of
// agent/net/network/upkeep has rules set again that somebody else takes away (the Thing of Watch). As upstream: endpoints that are ready,
// or, if none is, those that still serve while they end; topology hints; traffic policies; Services without a cluster address, of another
// proxy (label service.kubernetes.io/service-proxy-name) or headless by label are not its business. Not yet: IPv6. Tested: the plan as a
// table, Watch in a bubble.
package services
