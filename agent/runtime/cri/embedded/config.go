package embedded

import (
	"context"
	"net/netip"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// UpdateRuntimeConfig takes the node's pod CIDR from the control plane, or two of them with a comma, that of IPv4 first. An empty one
// changes nothing.
func (r *Runtime) UpdateRuntimeConfig(_ context.Context, config *runtimeapi.RuntimeConfig) error {
	text := config.GetNetworkConfig().GetPodCidr()
	if text == "" {
		return nil
	}
	var prefixes [2]netip.Prefix
	for i, part := range strings.SplitN(text, ",", len(prefixes)) {
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "pod CIDR: %v", err)
		}
		prefixes[i] = prefix
	}
	return coded(r.SetPodCIDR(prefixes[0], prefixes[1]))
}
