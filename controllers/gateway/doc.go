// Package gateway tells what comes of the Gateway API's objects whose class is ours: GatewayClasses, Gateways, HTTPRoutes,
// GRPCRoutes, TLSRoutes, ListenerSets, BackendTLSPolicies.
//
// It reads Services, EndpointSlices, Nodes and Namespaces from caches, and the objects of the Gateway API, Secrets with certificates and
// ConfigMaps with authorities from the API, once these kinds are served. It writes the GatewayClass "setpoint", when a node serves
// Gateways and there is none of that name, and of objects of ours: a class' conditions and supportedFeatures, a Gateway's addresses,
// conditions and listeners, a ListenerSet's conditions and listeners, and of a route's parents and a policy's ancestors those with our
// controllerName. With a pool of addresses it also writes a Service and an EndpointSlice for each Gateway, which it owns. agent/net/router
// serves, by the Result of agent/net/router/gateway that is built here too.
//
// Promises: the times of conditions change with their status only; what other controllers say of a route stays; nothing is written when
// nothing has changed.
//
// Tested in bubbles with reconciletest, and its meaning in agent/net/router/gateway.
package gateway
