// Package peers asks other nodes for layers of images, so that a layer is fetched from its registry once for a cluster, if not by several
// nodes at the same time.
//
// It owns the choice of nodes and the connections to their agents. Called by: the embedded runtime's image store, which agent hands a
// Client's Layer. It calls the standard library.
//
// It promises: at most askedMax nodes are asked for a layer; a node that does not answer within askTime, or stops in the middle for
// stallTime, delays a pull by no more. What comes is anybody's until the caller has checked its digest: a node's certificate is not
// checked. Only nodes and servers of the cluster are answered, by their certificates.
//
// Tested with servers of the test.
package peers
