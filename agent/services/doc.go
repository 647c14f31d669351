// Package services makes the cluster addresses of Services work on a node, as kube-proxy does elsewhere.
//
// It owns: which endpoints stand behind an address, as the Services and EndpointSlices of the cluster say. The
// agent calls Watch with its informers, and agent/host hands the result to the network (agent/network,
// [network.Translation]). It may call client-go and knows the network's types only.
//
// Promises: a change reaches the network within [settleTime] of being seen; many at once are one change, and what
// changes nothing for the network is not handed on. While the API is away the last known state holds. As upstream: endpoints
// that are ready, or, if none is, those that still serve while they end; Services without a cluster address, of
// another proxy (label service.kubernetes.io/service-proxy-name) or headless by label are not its business. Not yet: node ports, external
// and load balancer addresses, session affinity, traffic policies and distribution, IPv6. Tested: the plan as a table, Watch in a bubble.
package services
