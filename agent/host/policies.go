package host

import (
	"context"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/net/policy"
	"github.com/setpoint-io/setpoint/agent/net/policy/table"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded"
)

// policyNetwork enforces policies on the network of the embedded runtime. Of a remote runtime the network is its CNI plugin's,
// and so are policies.
type policyNetwork struct {
	*table.Table
	runtime *embedded.Runtime
}

// Connected implements policy.Network.
func (n policyNetwork) Connected(ctx context.Context) (all []policy.Sandbox, err error) {
	ready := &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}
	listed, err := n.runtime.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{State: ready})
	for _, s := range listed {
		found, err := n.runtime.PodSandboxStatus(ctx, s.Id, false)
		if status.Code(err) == codes.NotFound {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if addresses := addressesOf(found.GetStatus().GetNetwork()); len(addresses) > 0 {
			all = append(all, sandboxOf(s.Metadata, s.Labels, addresses))
		}
	}
	return all, err
}

// Admit implements agent.PolicyNetwork.
func (n policyNetwork) Admit(ask func(context.Context, policy.Sandbox) error) {
	n.runtime.Admit(func(ctx context.Context, pod *runtimeapi.PodSandboxConfig, addresses []netip.Addr) error {
		return ask(ctx, sandboxOf(pod.Metadata, pod.Labels, addresses))
	})
}

func sandboxOf(pod *runtimeapi.PodSandboxMetadata, labels map[string]string, addresses []netip.Addr) policy.Sandbox {
	return policy.Sandbox{Namespace: pod.Namespace, UID: types.UID(pod.Uid), Labels: labels, Addresses: addresses}
}

// addressesOf are a pod's, the first one first; none if it has no network of its own.
func addressesOf(network *runtimeapi.PodSandboxNetworkStatus) (all []netip.Addr) {
	texts := []string{network.GetIp()}
	for _, further := range network.GetAdditionalIps() {
		texts = append(texts, further.GetIp())
	}
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, address)
		}
	}
	return all
}
