// Package dns is the cluster's DNS on a node: it answers at the address of the Service kube-system/kube-dns.
//
// It owns: the listeners at that address (UDP and TCP on port 9053, to which the [Network] leads what is sent to port 53; metrics on
// 9153), who answers a question (records for names of the cluster, hosts and forward for others, as the ConfigMap kube-system/coredns
// says), and the form of answers. It may call agent/net/dns/{records,forward,corefile,kept}, agent/net/resolvconf, internal/clusterdns and
// client-go; the network is handed in as a [Network].
//
// Promises: it answers as long as that Service carries the label of the built-in DNS (clusterdns.ProxyLabel); without it the address is
// given up at once, so that pods of others can serve it. Names of the cluster are answered from this node's own view, also while no
// server can be reached; a restarted agent answers from what the earlier one kept in a file, at most [keepInterval] before it was
// killed, and without such a file with SERVFAIL until it knows the Services. Config.Settled is told when it begins to answer, so that pods
// can wait for it. What a client can make it hold is bounded: connections
// ([connectionsMax]), questions that wait ([waitingMax]), the cache (forward). A port that is taken is told and tried again. Run blocks
// until all its goroutines have ended.
//
// Tested over real sockets on loopback with Services of a fake cluster; the parts have their own tables. Scripts of cmd/setpoint ask
// from pods (dns), and while no server is there (dns_alone).
package dns
