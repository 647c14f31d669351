// Package gateway says what is served at the ports of Gateways, and what comes of each Gateway and each route.
//
// It owns the meaning of the Gateway API: which listeners are right, also those that ListenerSets add, which routes attach to which of
// them, which rule of all routes wins, what filters do, whom policies for backends trust, and the conditions that say so. agent/net/router
// serves requests by the Ports of a Result; controllers/gateway writes the statuses of the same Result. It may import
// agent/net/router/table, whose Routes it makes, and API types.
//
// A Gateway that has a Service of its own (ServiceName) is served at that Service's node ports, and nobody else is. All others are served
// at the same addresses, those of the nodes. So the listeners of several of them at one port are served
// together: a request goes to the listener with the most specific hostname, and among the routes of listeners with the same hostname
// by the precedence of the Gateway API. Of two protocols that cannot share a port, the one of the older Gateway stays.
//
// A host is one namespace's among all that are served at a port, Ingresses too: agent/net/router/hosts has the rule.
//
// With TLS a hostname also decides what becomes of a connection: its requests are routed, or it is copied.
//
// Promises: Build and every lookup are pure, and a Result never changes. What is not served as it says has a condition that says so. A
// lookup costs the same with any number of hosts, and grows with the labels of the host and the depth of the path.
//
// Tested with tables of the API's documentation.
package gateway
