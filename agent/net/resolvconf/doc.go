// Package resolvconf says which servers and search paths a pod's resolver uses.
//
// It owns: the reading of the node's resolv.conf, and what dnsPolicy and dnsConfig make of it and of the cluster's DNS. It may call
// the types of the API.
//
// Promises: upstream's limits of servers and search paths; what they leave out is told. A file that points at this machine's own
// resolver, which pods cannot reach, is replaced by the one that systemd-resolved keeps for others. An unreadable file says nothing.
//
// Tested with tables.
package resolvconf
