package agent

import (
	"context"
	"io"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/agent/images/peers"
	"github.com/setpoint-io/setpoint/agent/kubeletapi"
)

// Layers is a store of images that shares their layers with other nodes'.
type Layers interface {
	kubeletapi.Layers
	// SetLayerPeers says how layers of other nodes are had.
	SetLayerPeers(func(ctx context.Context, digest string) (io.ReadCloser, error))
}

// shareLayers has the store ask other nodes before registries.
func (a *agent) shareLayers(watch *nodeWatch) {
	if a.Layers == nil || a.PeerTLS == nil {
		return
	}
	client := peers.New(peers.Config{Nodes: watch.agents, Path: kubeletapi.LayersPath, TLS: a.PeerTLS})
	a.Layers.SetLayerPeers(client.Layer)
}

// agents are the addresses of the agents of other nodes that are Ready.
func (w *nodeWatch) agents() (all []string) {
	nodes, _ := w.lister.List(labels.Everything()) // a cache knows no errors
	for _, n := range nodes {
		port := n.Status.DaemonEndpoints.KubeletEndpoint.Port
		if n.Name == w.self || port == 0 || isSimulated(n) || !isReady(n) {
			continue
		}
		for _, address := range n.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				all = append(all, net.JoinHostPort(address.Address, strconv.Itoa(int(port))))
				break
			}
		}
	}
	return all
}
