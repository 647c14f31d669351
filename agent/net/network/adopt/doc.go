// Package adopt makes of a bridge that an earlier life of the node has left what one that is made now is: that life may have had other
// ranges, another MTU or other pods.
//
// It owns what a bridge has beside its ports: hardware address, MTU, addresses, routes, and the neighbours that it knows for good.
// agent/net/network calls it whenever it sets its bridge up. It calls netlink only.
//
// It promises: what is not wanted goes, what is there already stays as it is, so packets of pods that run are not held up. Tested by
// agent/net/network, in network namespaces, with lives that follow each other.
package adopt
