package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/agent/node"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

func (a *agent) openUsers() error {
	all, err := userns.HostRange()
	if err == nil {
		a.users, err = userns.Open(userns.Config{
			Dir: podconfig.Dirs{Root: a.DataDir}.Pods(), Users: all, PerPod: a.Settings.UsersPerPod, Mode: a.Settings.UserNamespaces,
			Logger: a.Logger,
		})
	}
	if err != nil {
		return fmt.Errorf("agent: user namespaces: %w", err)
	}
	return nil
}

// runtimeFeatures are what the runtime reports of itself, for the Node's status; an old one reports nothing.
func (a *agent) runtimeFeatures(ctx context.Context) node.RuntimeFeatures {
	answer, err := a.Runtime.Status(ctx, false)
	if err != nil {
		return node.RuntimeFeatures{}
	}
	var out node.RuntimeFeatures
	for _, h := range answer.GetRuntimeHandlers() {
		out.Handlers = append(out.Handlers, handlerOf(h))
	}
	if f := answer.GetFeatures(); f != nil {
		out.Node = &corev1.NodeFeatures{SupplementalGroupsPolicy: ptr.To(f.GetSupplementalGroupsPolicy())}
	}
	return out
}

func handlerOf(h *runtimeapi.RuntimeHandler) corev1.NodeRuntimeHandler {
	out := corev1.NodeRuntimeHandler{Name: h.GetName()}
	if f := h.GetFeatures(); f != nil {
		out.Features = &corev1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: ptr.To(f.GetRecursiveReadOnlyMounts()), UserNamespaces: ptr.To(f.GetUserNamespaces()),
		}
	}
	return out
}
