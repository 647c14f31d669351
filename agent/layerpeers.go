package agent

import (
	"context"
	"io"
	"iter"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/agent/api/kubeletapi"
	"github.com/setpoint-io/setpoint/agent/runtime/images/peers"
)

// Layers is a store of images that shares their layers with other nodes'.
type Layers interface {
	kubeletapi.Layers
	// SetLayerPeers says how layers of other nodes are had: as by peers.Client.Layer.
	SetLayerPeers(func(ctx context.Context, digest string, claim func(fetching bool)) iter.Seq[io.ReadCloser])
}

// shareLayers has the store ask other nodes before registries.
func (a *agent) shareLayers(watch *nodeWatch) {
	if a.Layers == nil || a.PeerTLS == nil {
		return
	}
	client := peers.New(peers.Config{Nodes: watch.agents, Path: kubeletapi.LayersPath, TLS: a.PeerTLS})
	a.Layers.SetLayerPeers(client.Layer)
}

// agents are the addresses of this node's agent and of those of other nodes that are Ready.
func (w *nodeWatch) agents() (self string, others []string) {
	nodes, _ := w.lister.List(labels.Everything()) // a cache knows no errors
	for _, n := range nodes {
		address := agentAddress(n)
		switch {
		case n.Name == w.self:
			self = address
		case address != "" && !isSimulated(n) && isReady(n):
			others = append(others, address)
		}
	}
	return self, others
}

// agentAddress is empty if the Node tells of no agent.
func agentAddress(n *corev1.Node) string {
	port := n.Status.DaemonEndpoints.KubeletEndpoint.Port
	for _, address := range n.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && port != 0 {
			return net.JoinHostPort(address.Address, strconv.Itoa(int(port)))
		}
	}
	return ""
}
