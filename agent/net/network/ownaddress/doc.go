// Package ownaddress gives this machine an address of a Service, beside its others, and leads one port of it to another: pods and the
// machine reach who listens there, while programs of others have the first port of all addresses. So DNS servers of the machine keep
// port 53, whichever of them begins first. Each source has a share of what it may send there; what is beyond is dropped.
//
// It owns the addresses of the loopback interface that have our label, and the nftables table setpoint-own-address; agent/host hands it to
// the DNS and to upkeep, and agent/net/network takes both away when all is uninstalled. It may call netlink, agent/net/network/{link,nft}
// and agent/net/ipfamily. Promises: one address at a time; what is so already is not changed, but for the table, which the first Hold makes
// anew. Tested in agent/net/network, with packets of pods beside a server that has the port.
package ownaddress
