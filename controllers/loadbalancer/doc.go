// Package loadbalancer gives Services of type LoadBalancer their addresses: those of the nodes, or from a pool one of each of the
// Service's families.
//
// It reads Services, Nodes and EndpointSlices, and owns status.loadBalancer and the condition [FromPool] of Services whose
// loadBalancerClass is empty or [Class]; others it leaves alone. It writes nothing else. Agents lead the addresses to endpoints,
// and announce those of a pool.
//
// Promises: an address that a Service has stays as long as it may have it; no two Services have one address of a pool, or one port
// of the nodes' addresses: the older Service has it, and an event tells the younger one who. The plan is pure: all Services of the
// type, all nodes, one answer. Tested: the plan as a table, the loop in a bubble.
package loadbalancer
