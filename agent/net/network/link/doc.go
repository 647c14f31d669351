// Package link removes and lists network interfaces, and what lists the kernel has about them, on machines where they come and go at
// any moment.
//
// agent/net/network and the packages below it call it. It calls netlink only.
//
// It promises: to remove an interface that is gone already, or goes meanwhile, is no error; a list that changed while the kernel sent
// it is read again, up to dumpTriesMax times. Lists are tested here, the rest by agent/net/network, whose tests run in network namespaces.
package link
