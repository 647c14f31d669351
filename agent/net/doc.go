// Package net is a room, a folder of packages: the network of a node.
//
// It has no code of its own. In the order in which to read what stands in it:
//
//	network       links and addresses of pods and the ways to other nodes, with a package for each thing of the kernel below it
//	ipfamily      the two versions of IP, for all rules
//	services      what leads addresses of Services to pods
//	policy        NetworkPolicies: policy/plan says what they mean, policy/table tells the kernel
//	hostfirewall  which ports of the machine pods reach
//	owntraffic    traffic that no Service may touch
//	resolvconf    which servers and search paths pods have for names
//	dns           the cluster's DNS on a node
//	router        Ingresses and Gateways; router/table and router/gateway say where a request goes
//
// What rules mean is pure (network/plan, policy/plan, router/table, router/gateway, dns/records), so that controllers and
// `setpoint net trace` ask the same functions. Its packages may import agent/base and each other as the table of rooms_test.go says;
// they know no container runtime and no worker of pods. Tested with tables, and in network namespaces with packets.
package net
