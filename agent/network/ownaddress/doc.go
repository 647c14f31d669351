// Package ownaddress gives this machine an address of a Service, beside its others: pods and the machine reach who listens there, and no
// translation is needed.
//
// It owns the addresses of the loopback interface that have our label; agent/host hands it to the DNS, and agent/network takes the
// address away when all is uninstalled. It may call netlink. Promises: one address at a time; what is so already is not changed.
// Tested in agent/network, with packets of pods.
package ownaddress
