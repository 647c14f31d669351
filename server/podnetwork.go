package server

import (
	"context"
	"net/netip"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver/rest/addresses"
	"github.com/setpoint-io/setpoint/controllers/podnetwork"
)

// ParsePodNetwork reads --pod-cidr and --node-cidr-mask-size; both may be empty.
func ParsePodNetwork(cidr string, nodeMaskSize int) (podnetwork.Network, error) {
	return podnetwork.Parse(cidr, nodeMaskSize, addresses.ServiceCIDR)
}

// ServiceCIDR covers the addresses of Services.
var ServiceCIDR = addresses.ServiceCIDR

// PodNetworkInForce asks the servers from where pods have their addresses, and how large each
// node's part is.
func PodNetworkInForce(ctx context.Context, client kubernetes.Interface) (cidr netip.Prefix, nodeMaskSize int, err error) {
	n, _, err := podnetwork.Read(ctx, client)
	return n.CIDR, n.NodeMaskSize, err
}
