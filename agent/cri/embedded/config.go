package embedded

import (
	"context"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// UpdateRuntimeConfig takes the node's pod CIDR from the control plane. An empty one changes nothing.
func (r *Runtime) UpdateRuntimeConfig(_ context.Context, config *runtimeapi.RuntimeConfig) error {
	text := config.GetNetworkConfig().GetPodCidr()
	if text == "" {
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "pod CIDR: %v", err)
	}
	return coded(r.SetPodCIDR(prefix))
}
