package host

import (
	"context"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/cri/embedded"
	"github.com/setpoint-io/setpoint/agent/policy"
	"github.com/setpoint-io/setpoint/agent/policy/table"
)

// policyNetwork enforces policies on the network of the embedded runtime. Of a remote runtime the network is its CNI plugin's,
// and so are policies.
type policyNetwork struct {
	*table.Table
	runtime *embedded.Runtime
}

// Connected implements policy.Network.
func (n policyNetwork) Connected(ctx context.Context) (all []policy.Sandbox, err error) {
	listed, err := n.runtime.ListPodSandbox(ctx, nil)
	for _, s := range listed {
		status, err := n.runtime.PodSandboxStatus(ctx, s.Id, false)
		if err != nil {
			return nil, err
		}
		if address, err := netip.ParseAddr(status.GetStatus().GetNetwork().GetIp()); err == nil {
			all = append(all, sandboxOf(s.Metadata, s.Labels, address))
		}
	}
	return all, err
}

// Admit implements agent.PolicyNetwork.
func (n policyNetwork) Admit(ask func(context.Context, policy.Sandbox) error) {
	n.runtime.Admit(func(ctx context.Context, pod *runtimeapi.PodSandboxConfig, address netip.Addr) error {
		return ask(ctx, sandboxOf(pod.Metadata, pod.Labels, address))
	})
}

func sandboxOf(pod *runtimeapi.PodSandboxMetadata, labels map[string]string, address netip.Addr) policy.Sandbox {
	return policy.Sandbox{Namespace: pod.Namespace, UID: types.UID(pod.Uid), Labels: labels, Address: address}
}
