// Package loadbalancer gives Services of type LoadBalancer their addresses: those of the nodes, or from a pool one of each of the
// Service's families.
//
// It reads Services, Nodes and EndpointSlices, and owns status.loadBalancer and the conditions [FromPool] and [AddressMissing] of Services
// whose loadBalancerClass is empty or [Class]; of other Services, and with the source none, it writes the condition [AddressTaken] alone:
// it tells who has an address and port that several claim, by the rule of agent/net/services. Agents lead the addresses to endpoints, and
// announce those of a pool.
//
// Promises: an address that a Service has stays as long as it may have it; no two Services have one address of a pool, or one port
// of the nodes' addresses: the older Service has it, and a condition and an event tell the younger one who. Namespaces share the
// addresses of a pool (internal/shares), but where a ResourceQuota says how many load balancers one may have. The plan is pure: all
// Services of the type, all nodes, one answer. Tested: the plan as a table, the loop in a bubble.
package loadbalancer
