package server

import (
	"context"
	"net/netip"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
)

// PodNetworkInForce asks the servers from where pods have their addresses, how large each node's part is, and from where
// Services have theirs.
func PodNetworkInForce(ctx context.Context, client kubernetes.Interface) (
	pods netip.Prefix, nodeMaskSize int, services netip.Prefix, err error,
) {
	n, _, err := podnetwork.Read(ctx, client)
	return n.CIDR, n.NodeMaskSize, n.Services, err
}
