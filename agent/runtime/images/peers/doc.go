// Package peers has layers of images from other nodes, so that a layer is fetched from its registry once for a cluster, also when several
// nodes want it at the same time.
//
// It owns what nodes tell each other of a layer, which of them fetches it, and the connections to their agents. The runtime's image store
// is handed a Client's Layer, and the node's port answers other nodes in the same terms. It calls the standard library.
//
// # Which node fetches
//
// All nodes have one order for a layer, by a hash of its digest and their address. It differs from layer to layer, so that nodes that
// pull one image share the work. A node that wants a layer
//
//  1. says Wanted to whoever asks it, and asks the askedMax others that come first;
//  2. takes the layer from one that has it; waits, and asks again, while one fetches it or sends it to as many as it can, or while one
//     that comes before it wants it too;
//  3. else says Fetching, and asks once more. If one that comes before it wants or fetches the layer, it goes back to 1 and waits for that
//     one. Else it fetches.
//
// Each says what it does before it asks, so of two nodes at least one sees the other. Had both passed step 3, the later one would not have
// seen the earlier one, which therefore began after it, saw it fetch in step 2, and waits. A node that fetches waits for nobody, and of
// those that wait for each other the first waits for no other: there is no cycle. What a node fetches does not depend on other layers.
//
// When the node that fetches dies or fails, as for its credentials, it no longer says Fetching; when nothing comes to it, it says so
// (package images). Then those that wait decide anew, and the next one fetches. They do so too when a layer cannot be handed out.
//
// In a cluster of more than askedMax+1 nodes, a few nodes that want a layer may ask only such that do not want it. Then each of them
// fetches.
//
// It promises: nothing is waited for after the caller's context has ended; an agent that says nothing for askTime is asked by nobody here
// for silenceTime; one that sends nothing for stallTime, or something wrong, is not asked for that layer again. What comes is anybody's
// until the caller has checked its digest: a node's certificate is not checked. Only nodes and servers of the cluster are answered, by
// their certificates.
//
// Tested with nodes of the test in a bubble: each outcome, and clusters whose nodes begin, fail and die at any moment. Package agent/host
// has real stores and connections.
package peers
