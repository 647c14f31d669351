// Package router serves Ingresses and Gateways on the ports of a node: it is the cluster's ingress controller on the machine.
//
// It owns the listeners of the node, the TLS towards clients, the requests to endpoints, and what is told of both. It may call:
// agent/net/router/table, which says where a request goes, and client-go for the objects.
//
// Promises: a request goes to an endpoint that was ready at most a moment (settleTime) ago, and directly, not through the address of its
// Service. A change of Ingresses, endpoints or certificates ends no request under way. A request that no endpoint has received is tried at
// another one, whatever its method, and never otherwise. Headers that tell of the client (X-Forwarded-*, Forwarded, X-Real-Ip) are
// ours, not the client's. A connection for a TLSRoute goes to one endpoint, and no byte of it is lost or changed. An endpoint whose
// Service has a BackendTLSPolicy is asked only over connections that this policy has checked. A port that is taken by another program
// is told and tried again. A node that may not serve (reserved.Edges) neither listens nor reads a Secret. Run blocks until all its
// goroutines have ended, and waits for requests and connections under way for at most drainTimeout.
//
// What is asked is counted by Ingress or route (Metrics), and logged on demand; a request waits for neither.
//
// Tested with real connections on loopback, and Ingresses in a fake cluster.
package router
