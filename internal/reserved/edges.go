package reserved

import corev1 "k8s.io/api/core/v1"

const (
	// EdgeLabel says which nodes serve Ingresses and Gateways. A node cannot write it on itself, whoever has its certificate.
	EdgeLabel = "node-restriction.kubernetes.io/setpoint-ingress"
	// Edge is the value on nodes that do.
	Edge = "true"
)

// Edges are the nodes that may serve Ingresses and Gateways, and so read their certificates: all, until a Node has EdgeLabel, whatever
// its value; then those where it is Edge.
type Edges struct{ chosen bool }

// EdgesOf looks at all Nodes.
func EdgesOf(nodes []*corev1.Node) (e Edges) {
	for _, n := range nodes {
		_, labelled := n.Labels[EdgeLabel]
		e.chosen = e.chosen || labelled
	}
	return e
}

// May tells whether a node is one of them; nil is one that has no Node.
func (e Edges) May(node *corev1.Node) bool {
	return !e.chosen || node != nil && node.Labels[EdgeLabel] == Edge
}

// Serves tells whether a node serves: it may, and has ports for it.
func (e Edges) Serves(node *corev1.Node) bool {
	_, _, ports := IngressPorts(node)
	return ports && e.May(node)
}

// EdgesChanged tells whether a change of a Node, of which either may be nil, can change who may serve.
func EdgesChanged(before, after *corev1.Node) bool {
	label := func(n *corev1.Node) (value string, labelled bool) {
		if n != nil {
			value, labelled = n.Labels[EdgeLabel]
		}
		return value, labelled
	}
	was, had := label(before)
	is, has := label(after)
	return was != is || had != has
}
