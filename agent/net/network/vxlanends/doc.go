// Package vxlanends tells the kernel where the other ends of this node's VXLAN are: it learns none by itself, and asks nobody.
//
// It owns the entries of neighbours of the device. agent/net/network calls it, and says which ends there are. It calls netlink only.
//
// It promises: an entry that is there already is left alone, and one of an end that is gone is removed. Tested by agent/net/network, in
// network namespaces.
package vxlanends
