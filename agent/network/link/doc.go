// Package link removes network interfaces that may vanish by themselves at any moment.
//
// agent/network and the packages below it that make interfaces call it. It calls netlink only.
//
// It promises: an interface that is gone already, or goes meanwhile, is no error. Tested by agent/network, whose tests run in network
// namespaces.
package link
