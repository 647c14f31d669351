package server

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
)

// PodNetworkInForce asks the servers from where pods and Services have their addresses, and how large each node's parts are.
func PodNetworkInForce(ctx context.Context, client kubernetes.Interface) (podnetwork.Network, error) {
	n, _, err := podnetwork.Read(ctx, client)
	return n, err
}
